"""Reporting: a call's progress, passed on to the client that made it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import ServerRequestContext

from holdfast.core import CallId
from holdfast.mcp.contract import Progressed

BACKLOG = 64
"""Reports that a slow client is behind; more are dropped, for a later one says more."""


class Reports:
    """The progress of every call under way."""

    def __init__(self) -> None:
        self._queues: dict[CallId, asyncio.Queue[Progressed]] = {}

    def hear(self, news: Progressed) -> None:
        """Take a report; one of a call that is over is dropped."""
        queue = self._queues.get(news.call)
        if queue is not None and not queue.full():
            queue.put_nowait(news)

    @asynccontextmanager
    async def passed_on(self, context: ServerRequestContext[Any, Any], call: CallId) -> AsyncIterator[None]:
        """Pass the reports of a call on while the block runs."""
        queue = self._queues[call] = asyncio.Queue(BACKLOG)

        async def report(news: Progressed) -> None:
            await context.session.report_progress(news.progress, news.total, news.message or None)

        async def pass_on() -> None:
            while True:
                await report(await queue.get())

        passing = asyncio.create_task(pass_on())
        try:
            yield
            while not queue.empty():
                await report(queue.get_nowait())
        finally:
            del self._queues[call]
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
