"""Patience with a program: it is waited for as long as it lives and says anything at all, or waits for us."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

from holdfast.core import counted
from holdfast.teams.errors import MemberLost
from holdfast.teams.programs import LineProcess

_Result = TypeVar("_Result")
AGAIN = "ask again: it takes its conversation up anew"


class Patience:
    """Watches one program."""

    def __init__(self, program: LineProcess, *, name: str, silence_seconds: float) -> None:
        self._program = program
        self._name = name
        self._silence_seconds = silence_seconds
        self._heard = asyncio.Event()
        self._waits_for_us = 0

    def hear(self) -> None:
        """It said something."""
        self._heard.set()

    @contextlib.contextmanager
    def considering(self) -> Iterator[None]:
        """It has asked us something: while the block runs its silence is ours."""
        self._waits_for_us += 1
        try:
            yield
        finally:
            self._waits_for_us -= 1
            self._heard.set()

    async def until(self, waiting: "asyncio.Future[_Result]") -> _Result:
        """Wait for something from it. Raises MemberLost where it ended, or was ended for its silence."""
        ended = asyncio.ensure_future(self._program.ended.wait())
        try:
            while True:
                self._heard.clear()
                heard = asyncio.ensure_future(self._heard.wait())
                patience = None if self._waits_for_us else self._silence_seconds
                watched: set[asyncio.Future[Any]] = {waiting, ended, heard}
                await asyncio.wait(watched, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                is_silent = not heard.done()
                heard.cancel()
                if waiting.done():
                    return waiting.result()
                if ended.done():
                    raise await self.lost()
                if is_silent and not self._waits_for_us:
                    await self._program.stop(is_hurried=True)
                    raise MemberLost(
                        f"{self._name} said nothing for {counted(self._silence_seconds, 'second')} and was ended",
                        hint=AGAIN,
                    )
        finally:
            ended.cancel()

    async def within(self, waiting: "asyncio.Future[_Result]", seconds: float, what: str) -> _Result:
        """Wait for something that has to come soon. Raises MemberLost."""
        ended = asyncio.ensure_future(self._program.ended.wait())
        try:
            watched: set[asyncio.Future[Any]] = {waiting, ended}
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            if ended.done():
                raise await self.lost()
            raise MemberLost(
                f"{self._name} gave no answer to {what} within {counted(seconds, 'second')}", hint=AGAIN
            )
        finally:
            ended.cancel()

    async def lost(self) -> MemberLost:
        """The error that tells how it ended."""
        await self._program.finished()
        return MemberLost(f"{self._name} {self._program.ending}", hint=AGAIN)
