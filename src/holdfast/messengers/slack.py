"""Slack: an app in socket mode (extra `slack`), so that it needs no public address.

A message starts a thread, and the thread is the session. Texts are sent as plain text: what an agent writes mentions nobody.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core import Value
from holdfast.core.errors import InvalidConfig
from holdfast.messengers.contract import (
    Button,
    Incoming,
    IncomingMessage,
    MessengerError,
    PressedButton,
    Receive,
)

RETRIES = 4
RECONNECT_SECONDS = 1.0
MAX_WAIT_SECONDS = 60.0
_LOG = logging.getLogger(__name__)
_SLACK_LOG = logging.getLogger("holdfast.messengers.slack.client")
_SLACK_LOG.setLevel(logging.CRITICAL)  # the client logs what it receives


class _MessageEvent(Value):
    type: str
    channel: str = ""
    user: str = ""
    text: str = ""
    ts: str = ""
    thread_ts: str = ""
    subtype: str = ""
    bot_id: str = ""


class _Id(Value):
    id: str = ""


class _Container(Value):
    message_ts: str = ""
    thread_ts: str = ""


class _Action(Value):
    value: str = ""
    action_ts: str = ""


class _Press(Value):
    user: _Id = _Id()
    channel: _Id = _Id()
    container: _Container = _Container()
    actions: tuple[_Action, ...] = ()


class _SlashCommand(Value):
    channel_id: str = ""
    user_id: str = ""
    text: str = ""


class Slack:
    """One app."""

    max_text = 2900
    """A block of text has at most 3,000 characters."""

    def __init__(self, bot_token: str, app_token: str, *, base_url: str) -> None:
        """Raises InvalidConfig if the extra is not installed."""
        try:
            from slack_sdk.http_retry.builtin_async_handlers import (
                AsyncConnectionErrorRetryHandler,
                AsyncRateLimitErrorRetryHandler,
                AsyncServerErrorRetryHandler,
            )
            from slack_sdk.socket_mode.aiohttp import SocketModeClient
            from slack_sdk.web.async_client import AsyncWebClient
        except ImportError as error:
            raise InvalidConfig(
                "the extra 'slack' is not installed", hint="pip install 'holdfast[slack]'"
            ) from error
        self._web = AsyncWebClient(
            bot_token,
            base_url=f"{base_url.rstrip('/')}/",
            logger=_SLACK_LOG,
            retry_handlers=[
                AsyncConnectionErrorRetryHandler(max_retry_count=RETRIES),
                AsyncRateLimitErrorRetryHandler(max_retry_count=RETRIES),
                AsyncServerErrorRetryHandler(max_retry_count=RETRIES),
            ],
        )
        # Any: the client's methods have no types.
        self._client_class: Any = SocketModeClient
        self._app_token = app_token
        self._receiving = asyncio.Lock()

    async def run(self, receive: Receive) -> None:
        """Receive over a web socket until cancelled. The client reconnects by itself; the first connection is tried again here."""

        async def listen(client: Any, request: Any) -> None:  # Any: the library's types are not exported
            async with self._receiving:  # the client handles envelopes side by side; we keep their order
                if (item := _incoming(request.type, request.payload)) is not None:
                    await receive(item)
                await client.send_socket_mode_response({"envelope_id": request.envelope_id})

        failures = 0
        while True:
            client = self._client_class(self._app_token, logger=_SLACK_LOG, web_client=self._web)
            client.socket_mode_request_listeners.append(listen)
            try:
                await client.connect()
                failures = 0
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failures += 1
                _LOG.warning("slack: no connection: %s", type(error).__name__)
                await asyncio.sleep(min(RECONNECT_SECONDS * 2 ** min(failures, 6), MAX_WAIT_SECONDS))
            finally:
                await client.close()

    async def say(self, thread: str, text: str) -> None:
        """Send a text."""
        await self._call("chat.postMessage", _place(thread) | _content(text))

    async def ask(self, thread: str, text: str, buttons: Sequence[Button]) -> str:
        """Send a text with buttons."""
        elements = [
            {
                "type": "button",
                "text": {"type": "plain_text", "text": each.label},
                "value": each.value,
                "action_id": f"answer-{number}",
            }
            for number, each in enumerate(buttons)
        ]
        content = _content(text)
        content["blocks"].append({"type": "actions", "elements": elements})
        return str((await self._call("chat.postMessage", _place(thread) | content)).get("ts", ""))

    async def settle(self, thread: str, question: str, text: str) -> None:
        """Replace a question by a text, without its buttons."""
        channel = _place(thread)["channel"]
        await self._call(
            "chat.update", {"channel": channel, "ts": question} | _content(text[: self.max_text])
        )

    async def send_file(self, thread: str, name: str, content: bytes, text: str) -> None:
        """Upload a file into the thread."""
        place = _place(thread)
        try:
            await self._web.files_upload_v2(
                channel=place["channel"],
                thread_ts=place["thread_ts"],
                filename=name,
                content=content,
                initial_comment=_escaped(text),
            )
        except Exception as error:
            raise MessengerError(_reason(error)) from None

    async def _call(self, method: str, fields: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self._web.api_call(method, json=fields)
        except Exception as error:
            raise MessengerError(_reason(error)) from None
        return answer.data if isinstance(answer.data, dict) else {}


def _incoming(kind: str, payload: dict[str, Any]) -> Incoming | None:
    """What an envelope brings; None for everything but a person's message."""
    try:
        match kind:
            case "events_api":
                return _message(msgspec.convert(payload.get("event", {}), _MessageEvent))
            case "interactive":
                return _press(msgspec.convert(payload, _Press))
            case "slash_commands":
                command = msgspec.convert(payload, _SlashCommand)
                return IncomingMessage(
                    id=f"command.{payload.get('trigger_id', '')}",
                    thread=f"{command.channel_id}:",
                    channel=command.channel_id,
                    sender=command.user_id,
                    text=f"/{command.text.strip() or 'help'}",
                )
            case _:
                return None
    except msgspec.ValidationError:
        return None


def _message(event: _MessageEvent) -> IncomingMessage | None:
    # An edit or a deletion has a subtype: what was done stays done.
    if event.type not in ("message", "app_mention") or event.subtype or event.bot_id or not event.ts:
        return None
    words = event.text.split(maxsplit=1)
    is_mention = event.text.startswith("<@") and len(words) == 2
    return IncomingMessage(
        # A mention arrives as a message and as a mention, with the same time.
        id=f"{event.channel}.{event.ts}",
        thread=f"{event.channel}:{event.thread_ts or event.ts}",
        channel=event.channel,
        sender=event.user,
        text=_unescaped(words[1] if is_mention else event.text),
    )


def _press(press: _Press) -> PressedButton | None:
    if not press.actions:
        return None
    container = press.container
    return PressedButton(
        id=press.actions[0].action_ts,
        thread=f"{press.channel.id}:{container.thread_ts or container.message_ts}",
        channel=press.channel.id,
        sender=press.user.id,
        value=press.actions[0].value,
        question=container.message_ts,
    )


def _content(text: str) -> dict[str, Any]:
    """A text as a block, in which Slack interprets nothing, and as the words of a notification."""
    block = {"type": "section", "text": {"type": "plain_text", "text": text or " ", "emoji": False}}
    return {"text": _escaped(text), "blocks": [block], "unfurl_links": False, "unfurl_media": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _place(thread: str) -> dict[str, Any]:
    channel, _, time = thread.partition(":")
    return {"channel": channel, "thread_ts": time or None}


def _reason(error: Exception) -> str:
    """The reason without addresses and tokens: Slack's own code, or the kind of error."""
    response: Any = getattr(error, "response", None)  # Any: the library's answer, or aiohttp's
    code = response.get("error") if response is not None and hasattr(response, "get") else None
    return f"Slack answered {code}" if isinstance(code, str) else type(error).__name__
