"""Telegram: a bot that asks for updates by long polling, so that it needs no public address.

The token is part of every address, so no error shows one.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import Value
from holdfast.messengers.contract import (
    Button,
    IncomingMessage,
    MessengerError,
    PressedButton,
    Receive,
)

if TYPE_CHECKING:
    import httpx2

POLL_SECONDS = 50
REQUEST_SECONDS = 20.0
ATTEMPTS = 5
MAX_WAIT_SECONDS = 60.0
MAX_BODY_BYTES = 20_000_000
_LOG = logging.getLogger(__name__)


class _Chat(Value):
    id: int


class _User(Value):
    id: int


class _Message(Value):
    message_id: int
    chat: _Chat
    sender: _User | None = msgspec.field(default=None, name="from")
    message_thread_id: int | None = None
    is_topic_message: bool = False
    text: str = ""


class _Press(Value):
    id: str
    sender: _User = msgspec.field(name="from")
    message: _Message | None = None
    data: str = ""


class _Update(Value):
    update_id: int
    message: _Message | None = None
    callback_query: _Press | None = None


class Telegram:
    """One bot."""

    max_text = 4000

    def __init__(self, token: str, *, base_url: str, retry_seconds: float = 1.0) -> None:
        self._address = f"{base_url.rstrip('/')}/bot{token}"
        self._retry_seconds = retry_seconds
        self._client: httpx2.AsyncClient | None = None

    async def run(self, receive: Receive) -> None:
        """Ask for updates until cancelled. An update is confirmed by asking for those after it."""
        try:
            await self._poll(receive)
        finally:
            if self._client is not None:
                await self._client.aclose()
                self._client = None

    async def _poll(self, receive: Receive) -> None:
        offset, failures = 0, 0
        while True:
            request = {
                "offset": offset,
                "timeout": POLL_SECONDS,
                # Edited messages are not asked for: what was done stays done.
                "allowed_updates": ["message", "callback_query"],
            }
            try:
                updates = await self._call("getUpdates", request, seconds=POLL_SECONDS + REQUEST_SECONDS)
                failures = 0
            except MessengerError as error:
                failures += 1
                _LOG.warning("telegram: no updates: %s", error)
                await asyncio.sleep(min(self._retry_seconds * 2 ** min(failures, 6), MAX_WAIT_SECONDS))
                continue
            for raw in updates if isinstance(updates, list) else []:
                offset = max(offset, await self._receive(raw, receive) + 1)

    async def say(self, thread: str, text: str) -> None:
        """Send a text."""
        await self._call("sendMessage", {**_place(thread), "text": text, **_NO_PREVIEW})

    async def ask(self, thread: str, text: str, buttons: Sequence[Button]) -> str:
        """Send a text with buttons."""
        keyboard = [[{"text": each.label, "callback_data": each.value} for each in buttons]]
        sent = await self._call(
            "sendMessage",
            {**_place(thread), "text": text, **_NO_PREVIEW, "reply_markup": {"inline_keyboard": keyboard}},
        )
        return str(sent.get("message_id", "")) if isinstance(sent, dict) else ""

    async def settle(self, thread: str, question: str, text: str) -> None:
        """Replace a question by a text, without its buttons."""
        place = {"chat_id": _place(thread)["chat_id"], "message_id": int(question)}
        await self._call("editMessageText", {**place, "text": text[: self.max_text], **_NO_PREVIEW})

    async def send_file(self, thread: str, name: str, content: bytes, text: str) -> None:
        """Send a file with a caption, of which Telegram shows 1,024 characters."""
        fields = {**{key: str(value) for key, value in _place(thread).items()}, "caption": text[:1024]}
        await self._call("sendDocument", fields, file=(name, content))

    async def _receive(self, raw: object, receive: Receive) -> int:
        """Pass one update on; returns its number. An update of another form is skipped."""
        number = int(raw.get("update_id", 0)) if isinstance(raw, dict) else 0
        try:
            update = msgspec.convert(raw, _Update)
        except msgspec.ValidationError:
            return number
        if (message := update.message) is not None and message.sender is not None and message.text:
            await receive(
                IncomingMessage(
                    id=f"{message.chat.id}.{message.message_id}",
                    thread=_thread(message),
                    channel=str(message.chat.id),
                    sender=str(message.sender.id),
                    text=message.text,
                )
            )
        elif (press := update.callback_query) is not None and press.message is not None:
            await receive(
                PressedButton(
                    id=press.id,
                    thread=_thread(press.message),
                    channel=str(press.message.chat.id),
                    sender=str(press.sender.id),
                    value=press.data,
                    question=str(press.message.message_id),
                )
            )
        return number

    async def _call(
        self,
        method: str,
        fields: Mapping[str, Any],  # Any: JSON, whose form differs by method
        *,
        seconds: float = REQUEST_SECONDS,
        file: tuple[str, bytes] | None = None,
    ) -> object:
        """Call a method. Waits where Telegram says that it is too much, and tries again where it does not answer."""
        for attempt in range(1, ATTEMPTS + 1):
            wait, reason = self._retry_seconds * 2 ** (attempt - 1), ""
            try:
                status, answer = await self._request(method, fields, seconds, file)
            except MessengerError as error:
                if method == "getUpdates":
                    raise
                reason = str(error)
            else:
                if isinstance(answer, dict) and answer.get("ok") is True:
                    return answer.get("result")
                reason = f"Telegram answered {status}"
                if status == 429 and isinstance(answer, dict) and isinstance(answer.get("parameters"), dict):
                    wait = float(answer["parameters"].get("retry_after", wait))
                elif status < 500:
                    raise MessengerError(reason)
            if attempt < ATTEMPTS:
                await asyncio.sleep(min(wait, MAX_WAIT_SECONDS))
        raise MessengerError(reason)

    async def _request(
        self, method: str, fields: Mapping[str, Any], seconds: float, file: tuple[str, bytes] | None
    ) -> tuple[int, object]:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(follow_redirects=False)
        options: dict[str, Any] = (
            {"json": dict(fields)} if file is None else {"data": dict(fields), "files": {"document": file}}
        )
        try:
            async with self._client.stream(
                "POST", f"{self._address}/{method}", timeout=seconds, **options
            ) as answer:
                body = b""
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > MAX_BODY_BYTES:
                        raise MessengerError("Telegram sent too much")
                return answer.status_code, msgspec.json.decode(body)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise MessengerError(type(error).__name__) from None
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested without end
            return answer.status_code, None


_NO_PREVIEW = {"link_preview_options": {"is_disabled": True}}
"""A preview would fetch what an agent wrote a link to."""


def _thread(message: _Message) -> str:
    topic = f".{message.message_thread_id}" if message.is_topic_message and message.message_thread_id else ""
    return f"{message.chat.id}{topic}"


def _place(thread: str) -> dict[str, int]:
    chat, _, topic = thread.partition(".")
    return {"chat_id": int(chat), **({"message_thread_id": int(topic)} if topic else {})}
