"""Judgements of hosts that several connections wait for at once: one question for each host and port.

A package manager opens many connections to one host; a person who is asked about that host is asked once.
"""

import asyncio
from collections.abc import Awaitable

from holdfast.commands.contract import HostVerdict, JudgeHost
from holdfast.core.errors import HoldfastError


class HostQuestions:
    """Asks for verdicts, a bounded number at the same time."""

    def __init__(self, judge: JudgeHost, *, asking: int, ask_seconds: float) -> None:
        self._judge = judge
        self._ask_seconds = ask_seconds
        self._slots = asyncio.Semaphore(asking)
        self._open: dict[tuple[str, int, str], _Question] = {}

    async def verdict(
        self, host: str, port: int, address: str = "", *, hung_up: Awaitable[None]
    ) -> HostVerdict | None:
        """The verdict, or None if the program hangs up first. A question that nobody waits for is cancelled."""
        key = (host, port, address)
        question = self._open.get(key)
        if question is None:
            question = self._open[key] = _Question(asyncio.create_task(self._ask(*key)))
        question.waiting += 1
        watch = asyncio.ensure_future(hung_up)
        try:
            async with asyncio.timeout(self._ask_seconds):
                await asyncio.wait((question.task, watch), return_when=asyncio.FIRST_COMPLETED)
            return question.task.result() if question.task.done() else None
        except TimeoutError:
            return HostVerdict(is_allowed=False, reason="no one approved it in time")
        finally:
            question.waiting -= 1
            if not question.waiting and self._open.get(key) is question:
                del self._open[key]
                question.task.cancel()
            watch.cancel()
            # The socket is read again only after the watch has let go of it.
            await asyncio.gather(watch, return_exceptions=True)

    async def _ask(self, host: str, port: int, address: str) -> HostVerdict:
        async with self._slots:
            try:
                return await self._judge(host, port, address)
            except HoldfastError as error:
                return HostVerdict(is_allowed=False, reason=f"it could not be judged: {error}")


class _Question:
    def __init__(self, task: asyncio.Task[HostVerdict]) -> None:
        self.task = task
        self.waiting = 0
