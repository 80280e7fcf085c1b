"""A foreign member's process: started under a warden, spoken to line by line, gone with all it started when we are.

A line that is no JSON is counted and left out; one without an end is cut off, and the program with it.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from holdfast.core import JsonObject
from holdfast.mcp import under_warden
from holdfast.teams.errors import MemberFailed, MemberLost

MAX_LINE_BYTES = 32 << 20
LAST_WORDS_BYTES = 8192
CLOSE_SECONDS = 1.0
STOP_SECONDS = 5.0


class LineProcess:
    """A running program that speaks JSON, one object a line."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline
        self._last_words = bytearray()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self.ended = asyncio.Event()
        self.strays = 0
        """Lines that were no JSON object."""
        self.trouble = ""

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
        reading, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *under_warden(reading, command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=Path(folder).resolve(),
                env=dict(environment),
                pass_fds=[reading],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(lifeline)
            raise MemberFailed(f"{command[0]}: cannot be started: {error}") from error
        finally:
            os.close(reading)
        started = cls(process, lifeline)
        started._tasks = (
            asyncio.create_task(started._read(on_line)),
            asyncio.create_task(started._listen()),
        )
        return started

    @property
    def is_running(self) -> bool:
        """Whether it can still be spoken to."""
        return not self.ended.is_set() and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Of the warden; the program is its child."""
        return self._process.pid

    @property
    def ending(self) -> str:
        """How it ended, for a person."""
        words = self._last_words.decode(errors="replace").strip().splitlines()
        how = self.trouble or f"ended with code {self._process.returncode}"
        return f"{how}: {words[-1][:500]}" if words else how

    async def write(self, line: object) -> None:
        """Say one line. Raises MemberLost."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(line) + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise MemberLost(f"the program {self.ending}") from error

    async def stop(self, *, is_hurried: bool = False) -> None:
        """Close its input, give it a moment, then have the warden end it and all it started. Idempotent."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not is_hurried:
            await self._wait(CLOSE_SECONDS)
        self.cut_off()
        if not await self._wait(STOP_SECONDS):
            self._process.kill()
            await self._wait(STOP_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_off(self, trouble: str = "") -> None:
        """Let go of the lifeline, so that the warden ends the program; `trouble` says why."""
        self.trouble = self.trouble or trouble
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    async def finished(self) -> None:
        """Wait until it has said everything and is gone."""
        await self.ended.wait()
        await self._wait(STOP_SECONDS)

    async def _wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        return self._process.returncode is not None

    async def _read(self, on_line: Callable[[JsonObject], None]) -> None:
        assert self._process.stdout is not None
        buffer = bytearray()
        while chunk := await self._process.stdout.read(1 << 16):
            buffer += chunk
            if b"\n" in chunk:
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                for line in filter(None, map(bytes.strip, lines)):
                    self._take(line, on_line)
            if len(buffer) > MAX_LINE_BYTES:
                self.cut_off(f"sent a line of more than {MAX_LINE_BYTES >> 20} MiB and was cut off")
                break
        self.ended.set()
        while await self._process.stdout.read(1 << 16):
            pass

    def _take(self, line: bytes, on_line: Callable[[JsonObject], None]) -> None:
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            value = None
        if isinstance(value, dict):
            on_line(value)
        else:
            self.strays += 1

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(1 << 16):
            self._last_words += chunk
            del self._last_words[:-LAST_WORDS_BYTES]
