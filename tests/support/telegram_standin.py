"""A stand-in for Telegram's HTTP API: updates by long polling, messages, buttons and files."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_standin import HttpStandIn, ReceivedRequest, http_standin

TOKEN = "123:secret-token"


@dataclass
class TelegramStandIn:
    http: HttpStandIn
    updates: list[dict[str, Any]] = field(default_factory=list)
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Every message, edit and file, with its method."""
    faults: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Answers to the next messages instead of success."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    def _next(self) -> int:
        self._number += 1
        return self._number

    def write(self, text: str, *, sender: int = 7, chat: int = 100, id: int | None = None) -> int:
        """A person writes a message; returns its id."""
        number = id if id is not None else self._next()
        message = {
            "message_id": number,
            "chat": {"id": chat},
            "from": {"id": sender},
            "text": text,
        }
        self._deliver({"message": message})
        return number

    def press(self, value: str, question: int, *, sender: int = 7, chat: int = 100) -> None:
        """A person presses a button."""
        message = {"message_id": question, "chat": {"id": chat}}
        press = {"id": str(self._next()), "from": {"id": sender}, "message": message, "data": value}
        self._deliver({"callback_query": press})

    def _deliver(self, update: dict[str, Any]) -> None:
        self.updates.append({"update_id": self._next(), **update})
        self._changed.set()

    def texts(self) -> list[str]:
        return [str(fields.get("text", "")) for _, fields in self.sent]

    async def until(self, holds: Callable[["TelegramStandIn"], bool]) -> None:
        """Wait until something holds of what was sent."""
        try:
            async with asyncio.timeout(60):
                while not holds(self):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"it never held of {self.sent[-5:]}") from None

    async def question(self, words: str) -> tuple[int, dict[str, str]]:
        """Wait for a question with these words; returns its message id and its buttons."""
        await self.until(lambda it: any(words in text for text in it._questions()))
        fields = next(f for _, f in reversed(self.sent) if words in f.get("text", "") and "reply_markup" in f)
        buttons = {
            each["text"]: each["callback_data"]
            for row in fields["reply_markup"]["inline_keyboard"]
            for each in row
        }
        return int(fields["message_id"]), buttons

    def _questions(self) -> list[str]:
        return [fields["text"] for _, fields in self.sent if "reply_markup" in fields]

    async def respond(self, request: ReceivedRequest) -> tuple[int, bytes]:
        prefix, _, method = request.path.rpartition("/")
        if prefix != f"/bot{TOKEN}":
            return 401, b'{"ok": false}'
        if method == "sendDocument":
            return self._sent(method, {"body": request.body})
        fields = json.loads(request.body)
        if method == "getUpdates":
            return 200, json.dumps({"ok": True, "result": await self._poll(fields["offset"])}).encode()
        return self._sent(method, fields)

    def _sent(self, method: str, fields: dict[str, Any]) -> tuple[int, bytes]:
        if self.faults:
            status, answer = self.faults.pop(0)
            return status, json.dumps({"ok": False, **answer}).encode()
        fields = {"message_id": self._next(), **fields}
        self.sent.append((method, fields))
        self._changed.set()
        return 200, json.dumps({"ok": True, "result": {"message_id": fields["message_id"]}}).encode()

    async def _poll(self, offset: int) -> list[dict[str, Any]]:
        self.updates = [each for each in self.updates if each["update_id"] >= offset]
        self._changed.set()
        while not self.updates:
            self._changed.clear()
            await self._changed.wait()
        return list(self.updates)


@asynccontextmanager
async def telegram_standin() -> AsyncIterator[TelegramStandIn]:
    """A server on a free port of loopback."""
    async with http_standin() as http:
        standin = TelegramStandIn(http)
        http.respond = standin.respond
        yield standin
