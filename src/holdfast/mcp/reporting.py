"""Reporting: a call's progress, passed on to the client that made it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.context import ServerRequestContext as Context

from holdfast.core import CallId
from holdfast.mcp.contract import Progressed
from holdfast.mcp.outbox import Outbox


class Reports:
    """The progress of every call under way."""

    def __init__(self) -> None:
        self._lines: dict[CallId, Outbox[Progressed]] = {}

    def hear(self, news: Progressed) -> None:
        """Take a report; one of a call that is over is dropped."""
        line = self._lines.get(news.call)
        if line is not None:
            line.put(news)

    @asynccontextmanager
    async def passed_on(self, context: Context, call: CallId) -> AsyncIterator[None]:
        """Pass the reports of a call on while the block runs."""

        async def send(news: Progressed) -> None:
            await context.session.report_progress(news.progress, news.total, news.message or None)

        line = self._lines[call] = Outbox(send)
        try:
            yield
            await line.drain()
        finally:
            del self._lines[call]
            line.close()
