"""A ward: a program under a warden, spoken to line by line, gone with all it started when we are.

It knows no protocol. A line has a greatest length; a program that sends a longer one is not listened to any more.

How a program is put under a warden, which takes it and all it started down with us.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

_WARDEN = Path(__file__).with_name("supervisor_main.py")


def supervised_command(lifeline: int, command: Sequence[str]) -> tuple[str, ...]:
    """The command line for a command under a warden; `lifeline` is the reading end of a pipe, handed down with it."""
    return (sys.executable, "-I", "-S", str(_WARDEN), str(lifeline), *command)


LAST_WORDS_BYTES = 8192
STOP_SECONDS = 3.0
_CHUNK = 1 << 16


class SupervisedProcess:
    """One running program. Made by `start`; ended by `stop`."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline
        self._last_words = bytearray()
        self._listening = asyncio.create_task(self._listen())
        self.ended = asyncio.Event()
        """Set when it says no more, whoever ended it."""
        self.trouble = ""
        """Why we hung up on it, where we did."""

    @classmethod
    async def start(
        cls, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> "SupervisedProcess":
        """Start a program. Raises OSError or ValueError where that cannot be."""
        reading, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *supervised_command(reading, command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env=dict(environment),
                pass_fds=[reading],
                start_new_session=True,
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(reading)
        return cls(process, lifeline)

    @property
    def pid(self) -> int:
        """Of the warden; the program is its child."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it can still be spoken to."""
        return not self.ended.is_set() and self._process.returncode is None

    @property
    def ending(self) -> str:
        """How it ended, for a person; the exit code is known once it was stopped."""
        if self.trouble:
            return self.trouble
        code = self._process.returncode
        words = self._last_words.decode(errors="replace").strip().splitlines()
        how = "ended" if code in (0, None) else f"ended with code {code}"
        return f"{how}: {words[-1][:500]}" if words else how

    async def lines(self, *, most_bytes: int, stall_seconds: float | None = None) -> AsyncGenerator[bytes]:
        """Every line that is not empty, until it closes its output or sends one that is too long or not whole."""
        assert self._process.stdout is not None
        reading = read_lines(self._process.stdout, most_bytes=most_bytes, stall_seconds=stall_seconds)
        try:
            async with contextlib.aclosing(reading) as lines:
                async for line in lines:
                    yield line
        except InvalidLine as error:
            self.trouble = f"sent {error} and was cut off"
        finally:
            self.ended.set()

    async def drain(self) -> None:
        """Throw the rest of its output away: a pipe that nobody reads never ends, and the process would not either."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(_CHUNK):
            pass

    async def write(self, line: bytes) -> None:
        """Say one line. Raises ConnectionError or RuntimeError where it no longer listens."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def stop(self, *, grace_seconds: float) -> None:
        """Close its input, give it a moment, then have the warden end it and all it started. Idempotent."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if grace_seconds > 0:
            await self._wait(grace_seconds)
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if not await self._wait(STOP_SECONDS):
            self._process.kill()  # the kernel then kills the program
            await self._wait(STOP_SECONDS)
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def finished(self) -> None:
        """Wait until it has said everything and is gone, for as long as a stop may take."""
        await self.ended.wait()
        await self._wait(STOP_SECONDS)

    async def _wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        return self._process.returncode is not None

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK):
            self._last_words += chunk
            del self._last_words[:-LAST_WORDS_BYTES]


class InvalidLine(Exception):
    """A line that is longer than it may be, or has no end; nothing after it can be trusted to begin where a line begins."""


async def read_lines(
    stream: asyncio.StreamReader, *, most_bytes: int, stall_seconds: float | None = None
) -> AsyncGenerator[bytes]:
    """Every line of a stream that is not empty, without its end. Raises BadLine, also for a long pause within one."""
    buffer = bytearray()
    while chunk := await _next(stream, stall_seconds if buffer else None):
        buffer += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                if len(line) > most_bytes:
                    raise _too_long(most_bytes)
                if line.strip():
                    yield line
        if len(buffer) > most_bytes:
            raise _too_long(most_bytes)


async def _next(stream: asyncio.StreamReader, seconds: float | None) -> bytes:
    if seconds is None:
        return await stream.read(_CHUNK)
    try:
        return await asyncio.wait_for(stream.read(_CHUNK), seconds)
    except TimeoutError:
        raise InvalidLine("half a message") from None


def _too_long(most_bytes: int) -> InvalidLine:
    return InvalidLine(f"a message of more than {most_bytes >> 20} MiB")
