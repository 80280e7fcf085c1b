"""A supervised child process that exchanges lines. It ends, with every process that it started, when we do.

`supervisor_main` is the process in between. This module knows no protocol above lines. A line has a maximum length; a
program that exceeds it is disconnected.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

_SUPERVISOR = Path(__file__).with_name("supervisor_main.py")


def supervised_command(lifeline: int, command: Sequence[str]) -> tuple[str, ...]:
    """Build the command line that runs a command under a supervisor; `lifeline` is the inherited reading end of a pipe."""
    return (sys.executable, "-I", "-S", str(_SUPERVISOR), str(lifeline), *command)


STDERR_TAIL_BYTES = 8192
STOP_SECONDS = 3.0
_CHUNK = 1 << 16


class SupervisedProcess:
    """A running program. Created by `start`, ended by `stop`."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline
        self._stderr_tail = bytearray()
        self._stderr_task = asyncio.create_task(self._read_stderr())
        self.ended = asyncio.Event()
        """Set when the program sends no more output, for any reason."""
        self.protocol_error = ""
        """Why we disconnected the program, if we did."""

    @classmethod
    async def start(
        cls, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> "SupervisedProcess":
        """Start a program. Raises OSError or ValueError."""
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
        """The process id of the supervisor; the program is its child."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the program can still receive lines."""
        return not self.ended.is_set() and self._process.returncode is None

    @property
    def exit_description(self) -> str:
        """How the program ended, for messages. The exit code is known after `stop`."""
        if self.protocol_error:
            return self.protocol_error
        code = self._process.returncode
        words = self._stderr_tail.decode(errors="replace").strip().splitlines()
        how = "ended" if code in (0, None) else f"ended with code {code}"
        return f"{how}: {words[-1][:500]}" if words else how

    async def lines(self, *, max_bytes: int, stall_seconds: float | None = None) -> AsyncGenerator[bytes]:
        """Yield every line that is not empty, until the program closes its output or sends an invalid line."""
        assert self._process.stdout is not None
        reading = read_lines(self._process.stdout, max_bytes=max_bytes, stall_seconds=stall_seconds)
        try:
            async with contextlib.aclosing(reading) as lines:
                async for line in lines:
                    yield line
        except InvalidLine as error:
            self.protocol_error = f"sent {error} and was disconnected"
        finally:
            self.ended.set()

    async def drain(self) -> None:
        """Discard the rest of the output: a full pipe that is not read would keep the process from ending."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(_CHUNK):
            pass

    async def write(self, line: bytes) -> None:
        """Send one line. Raises ConnectionError or RuntimeError if the program has closed its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def stop(self, *, grace_seconds: float) -> None:
        """Close the program's input, wait for the grace period, then have the supervisor end the process tree. Idempotent."""
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
        self._stderr_task.cancel()
        await asyncio.gather(self._stderr_task, return_exceptions=True)

    async def finished(self) -> None:
        """Wait until the output has ended and the process is gone, at most as long as a stop takes."""
        await self.ended.wait()
        await self._wait(STOP_SECONDS)

    async def _wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK):
            self._stderr_tail += chunk
            del self._stderr_tail[:-STDERR_TAIL_BYTES]


class InvalidLine(Exception):
    """A line that is too long or incomplete; the position of later lines is unknown."""


async def read_lines(
    stream: asyncio.StreamReader, *, max_bytes: int, stall_seconds: float | None = None
) -> AsyncGenerator[bytes]:
    """Yield every line that is not empty, without its line break. Raises InvalidLine, also if a line stalls."""
    buffer = bytearray()
    while chunk := await _next(stream, stall_seconds if buffer else None):
        buffer += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                if len(line) > max_bytes:
                    raise _too_long(max_bytes)
                if line.strip():
                    yield line
        if len(buffer) > max_bytes:
            raise _too_long(max_bytes)


async def _next(stream: asyncio.StreamReader, seconds: float | None) -> bytes:
    if seconds is None:
        return await stream.read(_CHUNK)
    try:
        async with asyncio.timeout(seconds):
            return await stream.read(_CHUNK)
    except TimeoutError:
        raise InvalidLine("an incomplete message") from None


def _too_long(max_bytes: int) -> InvalidLine:
    return InvalidLine(f"a message of more than {max_bytes >> 20} MiB")
