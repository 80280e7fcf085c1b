"""An external member's process that speaks one JSON object per line, and the timeout for its silence.

A line that is not JSON is counted and skipped. A line that starts like an object but does not parse was a message that
a caller may wait for, so the process is terminated; so is one that sends an endless line.
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
ASK_AGAIN = "ask again: the conversation is resumed"
_Result = TypeVar("_Result")


class LineProcess:
    """A running program."""

    def __init__(self, process: SupervisedProcess, on_line: Callable[[JsonObject], None]) -> None:
        self._process = process
        self._on_line = on_line
        self._reading = asyncio.create_task(self._read())
        self._stopping: asyncio.Task[None] | None = None
        self.skipped_lines = 0
        """How many lines were not a JSON object."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        on_line: Callable[[JsonObject], None],
    ) -> "LineProcess":
        """Start a program and pass its lines to `on_line`. Raises MemberFailed."""
        try:
            process = await SupervisedProcess.start(
                command, folder=Path(folder).resolve(), environment=environment
            )
        except (OSError, ValueError) as error:
            raise MemberFailed(f"{command[0]}: cannot be started: {error}") from error
        return cls(process, on_line)

    @property
    def ended(self) -> asyncio.Event:
        """Set when the program has ended or was terminated."""
        return self._process.ended

    @property
    def is_running(self) -> bool:
        """Whether it can take input."""
        return self._process.is_running

    @property
    def pid(self) -> int:
        """The process id of the supervisor; the program is its child."""
        return self._process.pid

    @property
    def exit_description(self) -> str:
        """How the program ended, for a person."""
        return self._process.exit_description

    async def write(self, line: object) -> None:
        """Write one line. Raises MemberLost."""
        try:
            await self._process.write(msgspec.json.encode(line))
        except (ConnectionError, RuntimeError) as error:
            raise MemberLost(f"the program {self.exit_description}") from error

    async def stop(self, *, is_immediate: bool = False) -> None:
        """Close its input, wait briefly, then have the supervisor end it with every process it started. Idempotent."""
        await self._process.stop(grace_seconds=0 if is_immediate else CLOSE_SECONDS)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if self._stopping is not None:
            await asyncio.gather(self._stopping, return_exceptions=True)

    def terminate(self, reason: str) -> None:
        """End the program and every process it started, and ignore its further output. `reason` says why."""
        self._process.protocol_error = self._process.protocol_error or reason
        self._process.ended.set()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._process.stop(grace_seconds=0))

    async def wait(self) -> None:
        """Wait until its output is read and the program has ended."""
        await self._process.finished()

    async def _read(self) -> None:
        async for line in self._process.lines(max_bytes=MAX_LINE_BYTES):
            if not self._process.protocol_error:
                self._parse(line)
        if self._process.protocol_error:
            self.terminate(self._process.protocol_error)
        await self._process.drain()

    def _parse(self, line: bytes) -> None:
        try:
            value = msgspec.json.decode(line)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested without end
            value = None
        if isinstance(value, dict):
            self._on_line(value)
            return
        self.skipped_lines += 1
        if line.lstrip().startswith(b"{"):
            self.terminate("sent a broken message and was cut off")


class SilenceTimeout:
    """Bounds how long a program may be silent. Time in which it waits for us does not count."""

    def __init__(self, program: LineProcess, *, name: str, silence_seconds: float) -> None:
        self._program = program
        self._name = name
        self._silence_seconds = silence_seconds
        self._activity = asyncio.Event()
        self._waits_for_us = 0

    def reset(self) -> None:
        """Restart the timeout, because the program sent something."""
        self._activity.set()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend the timeout while the block runs, because the program waits for our answer."""
        self._waits_for_us += 1
        try:
            yield
        finally:
            self._waits_for_us -= 1
            self._activity.set()

    async def wait_for(self, waiting: "asyncio.Future[_Result]") -> _Result:
        """Wait for a result of the program. Raises MemberLost if it ended, or was stopped for its silence."""
        ended = asyncio.ensure_future(self._program.ended.wait())
        try:
            while True:
                self._activity.clear()
                activity = asyncio.ensure_future(self._activity.wait())
                timeout = None if self._waits_for_us else self._silence_seconds
                watched: set[asyncio.Future[Any]] = {waiting, ended, activity}
                await asyncio.wait(watched, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                is_silent = not activity.done()
                activity.cancel()
                if waiting.done():
                    return waiting.result()
                if ended.done():
                    raise await self.lost_error()
                if is_silent and not self._waits_for_us:
                    await self._program.stop(is_immediate=True)
                    raise MemberLost(
                        f"{self._name} said nothing for {pluralize(self._silence_seconds, 'second')} and was stopped",
                        hint=ASK_AGAIN,
                    )
        finally:
            ended.cancel()

    async def wait_at_most(self, waiting: "asyncio.Future[_Result]", seconds: float, what: str) -> _Result:
        """Wait for a result within a fixed time. Raises MemberLost."""
        ended = asyncio.ensure_future(self._program.ended.wait())
        try:
            watched: set[asyncio.Future[Any]] = {waiting, ended}
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            if ended.done():
                raise await self.lost_error()
            raise MemberLost(
                f"{self._name} did not answer {what} within {pluralize(seconds, 'second')}", hint=ASK_AGAIN
            )
        finally:
            ended.cancel()

    async def lost_error(self) -> MemberLost:
        """The error that says how the program ended."""
        await self._program.wait()
        return MemberLost(f"{self._name} {self._program.exit_description}", hint=ASK_AGAIN)
