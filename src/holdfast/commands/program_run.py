"""One program that a sandbox runs, as the host sees it: its streams, its end and its outcome."""

import asyncio
import signal
import time
from pathlib import Path

from holdfast.commands.contract import CommandOutcome, ProcessStatus
from holdfast.commands.full.channel import Ended
from holdfast.commands.output import InputWriter, OutputReader


class ProgramRun:
    """A program that runs, or has ended."""

    def __init__(
        self,
        id: int,
        *,
        name: str,
        argv: tuple[str, ...],
        reader: OutputReader,
        writer: InputWriter | None,
        has_channel: bool = False,
    ) -> None:
        self.id = id
        self.name = name
        self.argv = argv
        self.reader = reader
        self.writer = writer
        self.has_channel = has_channel
        self.ports: tuple[int, ...] = ()
        self.is_timed_out = False
        self._started = time.monotonic()
        self._started_ms = time.time_ns() // 1_000_000
        self.outcome: asyncio.Future[CommandOutcome] = asyncio.get_running_loop().create_future()

    @property
    def has_ended(self) -> bool:
        """Whether the program and all that it started are gone."""
        return self.outcome.done()

    @property
    def status(self) -> ProcessStatus:
        """The status for lists of background processes."""
        return ProcessStatus(
            id=f"p{self.id}",
            name=self.name,
            argv=self.argv,
            is_running=not self.has_ended,
            started_ms=self._started_ms,
            ports=() if self.has_ended else self.ports,
            outcome=self.outcome.result() if self.has_ended else None,
        )

    def end(self, ended: Ended) -> None:
        """Read the last output, close the streams and set the outcome."""
        self.reader.finish()
        if self.writer is not None:
            self.writer.close()
        if self.has_ended:
            return
        self.outcome.set_result(
            CommandOutcome(
                code=ended.code if ended.code >= 0 else None,
                signal=_signal_name(-ended.code) if ended.code < 0 else "",
                is_timed_out=self.is_timed_out,
                stopped_because=ended.stopped_because,
                output_bytes=self.reader.total_bytes,
                left_processes=ended.left,
                seconds=time.monotonic() - self._started,
                cpu_seconds=ended.cpu_seconds,
                memory_mb=ended.memory_mb,
            )
        )

    def discard(self) -> None:
        """Close the streams of a program that did not start."""
        self.reader.close()
        if self.writer is not None:
            self.writer.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def current_umask() -> int:
    """The umask of this process; reading it any other way would change it for a moment, in every thread."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
