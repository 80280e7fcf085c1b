"""An outbox: what is to be sent to one client, in order and bounded."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_Item = TypeVar("_Item")

BACKLOG = 64
"""How far a slow client may be behind; then the oldest is dropped, for a later one says more."""


class Outbox(Generic[_Item]):
    """Sends one thing after the other. There is a task only while there is something to send."""

    def __init__(self, send: Callable[[_Item], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: deque[_Item] = deque(maxlen=BACKLOG)
        self._sending: asyncio.Task[None] | None = None
        self.is_broken = False
        """Whether the client is gone; how it left does not matter."""

    def put(self, item: _Item) -> None:
        """Have it sent; must be called from the event loop, and never waits."""
        if self.is_broken:
            return
        self._waiting.append(item)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def drain(self) -> None:
        """Wait until everything is sent."""
        if self._sending is not None:
            await self._sending

    def close(self) -> None:
        """Drop what is left."""
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._waiting.popleft())
        except Exception:
            self.is_broken = True
            self._waiting.clear()
