"""A foreign member's process: a ward that speaks JSON, one object a line.

A line that is no JSON object is counted and left out. One that begins as an object and is none was a message, and somebody may wait
for it for ever; so the program is cut off there, as it is at a line without an end.

Patience with a program: it is waited for as long as it lives and says anything at all, or waits for us.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.core import JsonObject, pluralize
from holdfast.process.supervised import SupervisedProcess
from holdfast.teams.errors import MemberFailed, MemberLost

MAX_LINE_BYTES = 32 << 20
CLOSE_SECONDS = 1.0


class LineProcess:
    """A running program."""

    def __init__(self, ward: SupervisedProcess, on_line: Callable[[JsonObject], None]) -> None:
        self._ward = ward
        self._on_line = on_line
        self._reading = asyncio.create_task(self._read())
        self._ending: asyncio.Task[None] | None = None
        self.strays = 0
        """Lines that were no JSON object."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        on_line: Callable[[JsonObject], None],
    ) -> "LineProcess":
        """Start a program; every line goes to `on_line`. Raises MemberFailed."""
        try:
            ward = await SupervisedProcess.start(
                command, folder=Path(folder).resolve(), environment=environment
            )
        except (OSError, ValueError) as error:
            raise MemberFailed(f"{command[0]}: cannot be started: {error}") from error
        return cls(ward, on_line)

    @property
    def ended(self) -> asyncio.Event:
        """Set when it says no more, whoever ended it."""
        return self._ward.ended

    @property
    def is_running(self) -> bool:
        """Whether it can still be spoken to."""
        return self._ward.is_running

    @property
    def pid(self) -> int:
        """Of the warden; the program is its child."""
        return self._ward.pid

    @property
    def exit_description(self) -> str:
        """How it ended, for a person."""
        return self._ward.exit_description

    async def write(self, line: object) -> None:
        """Say one line. Raises MemberLost."""
        try:
            await self._ward.write(msgspec.json.encode(line))
        except (ConnectionError, RuntimeError) as error:
            raise MemberLost(f"the program {self.exit_description}") from error

    async def stop(self, *, is_hurried: bool = False) -> None:
        """Close its input, give it a moment, then have the warden end it and all it started. Idempotent."""
        await self._ward.stop(grace_seconds=0 if is_hurried else CLOSE_SECONDS)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if self._ending is not None:
            await asyncio.gather(self._ending, return_exceptions=True)

    def cut_off(self, trouble: str) -> None:
        """End the program and all it started; `trouble` says why. What it says from here on is not heard."""
        self._ward.protocol_error = self._ward.protocol_error or trouble
        self._ward.ended.set()
        if self._ending is None:
            self._ending = asyncio.create_task(self._ward.stop(grace_seconds=0))

    async def finished(self) -> None:
        """Wait until it has said everything and is gone."""
        await self._ward.finished()

    async def _read(self) -> None:
        async for line in self._ward.lines(max_bytes=MAX_LINE_BYTES):
            if not self._ward.protocol_error:
                self._take(line)
        if self._ward.protocol_error:
            self.cut_off(self._ward.protocol_error)
        await self._ward.drain()

    def _take(self, line: bytes) -> None:
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            value = None
        if isinstance(value, dict):
            self._on_line(value)
            return
        self.strays += 1
        if line.lstrip().startswith(b"{"):
            self.cut_off("sent a broken message and was cut off")


_Result = TypeVar("_Result")
AGAIN = "ask again: it takes its conversation up anew"


class SilenceTimeout:
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
                        f"{self._name} said nothing for {pluralize(self._silence_seconds, 'second')} and was ended",
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
                f"{self._name} gave no answer to {what} within {pluralize(seconds, 'second')}", hint=AGAIN
            )
        finally:
            ended.cancel()

    async def lost(self) -> MemberLost:
        """The error that tells how it ended."""
        await self._program.finished()
        return MemberLost(f"{self._name} {self._program.exit_description}", hint=AGAIN)
