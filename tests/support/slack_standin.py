"""A stand-in for Slack: its HTTP API, and the web socket of socket mode."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.support.http_standin import HttpStandIn, ReceivedRequest, http_standin
from websockets.asyncio.server import ServerConnection, serve

BOT_TOKEN, APP_TOKEN = "xoxb-secret", "xapp-secret"


@dataclass
class SlackStandIn:
    http: HttpStandIn
    socket_port: int = 0
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    unconfirmed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Envelopes that the app has not confirmed; a new connection gets them again."""
    connections: set[ServerConnection] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def write(
        self, text: str, *, user: str = "U7", channel: str = "C1", thread: str = "", ts: str = "", **more: str
    ) -> str:
        """A person writes a message; returns its time."""
        ts = ts or f"1700000000.{self._next():06d}"
        event = {"type": "message", "channel": channel, "user": user, "text": text, "ts": ts, **more}
        if thread:
            event["thread_ts"] = thread
        await self._deliver("events_api", {"event": event})
        return ts

    async def press(
        self, value: str, question: str, *, user: str = "U7", channel: str = "C1", thread: str
    ) -> None:
        """A person presses a button."""
        payload = {
            "type": "block_actions",
            "user": {"id": user},
            "channel": {"id": channel},
            "container": {"message_ts": question, "thread_ts": thread},
            "actions": [{"value": value, "action_ts": str(self._next())}],
        }
        await self._deliver("interactive", payload)

    async def command(self, text: str, *, user: str = "U7", channel: str = "C1") -> None:
        """A person writes /holdfast TEXT."""
        payload = {"channel_id": channel, "user_id": user, "text": text, "trigger_id": str(self._next())}
        await self._deliver("slash_commands", payload)

    async def drop_connections(self) -> None:
        for connection in tuple(self.connections):
            await connection.close()

    async def _deliver(self, kind: str, payload: dict[str, Any]) -> None:
        id = f"envelope-{self._next()}"
        envelope = {"type": kind, "envelope_id": id, "payload": payload, "accepts_response_payload": False}
        self.unconfirmed[id] = envelope
        for connection in self.connections:
            await connection.send(json.dumps(envelope))

    def texts(self) -> list[str]:
        return [_shown(fields) for _, fields in self.sent]

    async def until(self, holds: Callable[["SlackStandIn"], bool]) -> None:
        """Wait until something holds of what was sent."""
        try:
            async with asyncio.timeout(60):
                while not holds(self):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"it never held of {self.sent[-5:]}") from None

    async def question(self, words: str) -> tuple[str, dict[str, str]]:
        """Wait for a question with these words; returns its time and its buttons."""
        found: list[dict[str, Any]] = []

        def is_there(it: "SlackStandIn") -> bool:
            found[:] = [f for _, f in it.sent if words in _shown(f) and _buttons(f)]
            return bool(found)

        await self.until(is_there)
        return found[-1]["ts"], _buttons(found[-1])

    async def connected(self, connection: ServerConnection) -> None:
        self.connections.add(connection)
        self._changed.set()
        try:
            await connection.send(json.dumps({"type": "hello"}))
            for envelope in tuple(self.unconfirmed.values()):
                await connection.send(json.dumps(envelope))
            async for message in connection:
                self.unconfirmed.pop(json.loads(message).get("envelope_id", ""), None)
                self._changed.set()
        finally:
            self.connections.discard(connection)

    async def respond(self, request: ReceivedRequest) -> tuple[int, bytes]:
        method = request.path.rpartition("/")[2].partition("?")[0]
        if method == "upload":
            self.files.append(request.body)
            self._changed.set()
            return 200, b"OK"
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("authorization") != f"Bearer {token}":
            return 200, b'{"ok": false, "error": "invalid_auth"}'
        if method == "apps.connections.open":
            return 200, json.dumps({"ok": True, "url": f"ws://127.0.0.1:{self.socket_port}/"}).encode()
        if method == "files.getUploadURLExternal":
            answer = {"ok": True, "upload_url": f"{self.http.url}/upload", "file_id": "F1"}
            return 200, json.dumps(answer).encode()
        is_json = "json" in request.headers.get("content-type", "")
        fields = (
            json.loads(request.body)
            if is_json
            else {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        )
        fields.setdefault("ts", f"1800000000.{self._next():06d}")
        self.sent.append((method, fields))
        self._changed.set()
        return 200, json.dumps({"ok": True, "ts": fields["ts"], "files": [{"id": "F1"}]}).encode()


def _shown(fields: dict[str, Any]) -> str:
    blocks = fields.get("blocks", [])
    return str(blocks[0]["text"]["text"]) if blocks else str(fields.get("text", ""))


def _buttons(fields: dict[str, Any]) -> dict[str, str]:
    elements = [each for block in fields.get("blocks", []) for each in block.get("elements", [])]
    return {each["text"]["text"]: each["value"] for each in elements}


@asynccontextmanager
async def slack_standin() -> AsyncIterator[SlackStandIn]:
    """Servers on free ports of loopback."""
    async with http_standin() as http:
        standin = SlackStandIn(http)
        http.respond = standin.respond
        async with serve(standin.connected, "127.0.0.1", 0) as server:
            standin.socket_port = next(iter(server.sockets)).getsockname()[1]
            yield standin
