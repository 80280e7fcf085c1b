"""Reporting: a call's progress, passed on to the client that made it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import ServerRequestContext

from holdfast.core import CallId
from holdfast.mcp.contract import Progressed

BACKLOG = 64
"""Reports that a slow client may be behind; the oldest are dropped, for a later one says more."""


class Reports:
    """The progress of every call under way."""

    def __init__(self) -> None:
        self._lines: dict[CallId, _Line] = {}

    def hear(self, news: Progressed) -> None:
        """Take a report; one of a call that is over is dropped."""
        line = self._lines.get(news.call)
        if line is not None:
            line.hear(news)

    @asynccontextmanager
    async def passed_on(self, context: ServerRequestContext[Any, Any], call: CallId) -> AsyncIterator[None]:
        """Pass the reports of a call on while the block runs."""
        line = self._lines[call] = _Line(context)
        try:
            yield
            await line.drain()
        finally:
            del self._lines[call]
            line.hang_up()


class _Line:
    """The reports of one call, in order. Most calls report nothing, so there is a task only while one is to be sent."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._context = context
        self._waiting: deque[Progressed] = deque(maxlen=BACKLOG)
        self._sending: asyncio.Task[None] | None = None

    def hear(self, news: Progressed) -> None:
        self._waiting.append(news)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def drain(self) -> None:
        if self._sending is not None:
            await self._sending

    def hang_up(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self) -> None:
        while self._waiting:
            news = self._waiting.popleft()
            await self._context.session.report_progress(news.progress, news.total, news.message or None)
