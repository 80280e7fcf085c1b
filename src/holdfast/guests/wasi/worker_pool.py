"""The worker processes of the wasi engine: forked from one zygote, driven over a socket, killed by pidfd."""

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import holdfast.guests.wasi.component as component
import holdfast.guests.wasi.frames as frames
from holdfast.core.errors import EngineNotBuilt, GuestError
from holdfast.process.stream_reads import write_all

_ZYGOTE_PROGRAM = (
    "import sys; sys.path[:0] = sys.argv[3:];"
    " from holdfast.guests.wasi.zygote_main import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)
_READY = b"+"
_START_SECONDS = 30.0
_END_SECONDS = 10.0
_STATUS_BYTES = 4


class Worker:
    """One worker process and its connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, report: socket.socket, pidfd: int
    ) -> None:
        self._reader, self._writer, self._report = reader, writer, report
        self._pidfd = pidfd
        self._io_counters = _open_io_counters(pidfd)
        self._exit_status: int | None = None
        self._ending = asyncio.Lock()
        self.notes: tuple[str, ...] = ()

    async def send(self, frame: frames.ToWorker) -> None:
        """Send a frame. A broken connection is reported by the next `read`."""
        with contextlib.suppress(ConnectionError):
            await write_all(self._writer, frames.pack(frame))

    async def send_answer(self, content: bytes) -> None:
        """Send the answer of a call, in JSON. A broken connection is reported by the next `read`."""
        with contextlib.suppress(ConnectionError):
            await write_all(self._writer, *frames.answered(content))

    async def read(self, *, max_bytes: int = frames.MAX_FRAME_BYTES) -> frames.FromWorker:
        """The next frame. Raises BrokenFrame."""
        return await frames.read(self._reader, max_bytes=max_bytes)

    def written_bytes(self) -> int:
        """What the process has written so far; 0 if this kernel does not count it."""
        if self._io_counters < 0:
            return 0
        try:
            text = os.pread(self._io_counters, 1 << 10, 0)
            return int(text.partition(b"wchar: ")[2].partition(b"\n")[0])
        except (OSError, ValueError):
            return 0

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended."""
        if self._pidfd < 0:
            return True
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def kill(self) -> None:
        """Kill the process. A pidfd identifies it, so the signal cannot reach another process."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def end(self) -> int:
        """Kill the process and wait until it has ended. Returns the exit status, negative for a signal. Idempotent."""
        async with self._ending:
            if self._exit_status is None:
                self.kill()
                self._writer.close()
                self._exit_status = await self._reported_status()
                self._release()
                with contextlib.suppress(OSError):
                    await self._writer.wait_closed()
            return self._exit_status

    async def _reported_status(self) -> int:
        """The exit status that the zygote reports. If the zygote has died, it reports none, and its workers were killed."""
        status = b""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                status = await asyncio.get_running_loop().sock_recv(self._report, _STATUS_BYTES)
        return int.from_bytes(status, "big", signed=True) if len(status) == _STATUS_BYTES else -signal.SIGKILL

    def _release(self) -> None:
        for descriptor in (self._pidfd, self._io_counters):
            if descriptor >= 0:
                os.close(descriptor)
        self._pidfd = self._io_counters = -1
        self._report.close()


class IdleGuest(Protocol):
    """A guest that keeps a worker between runs."""

    async def evict(self) -> None:
        """Save the variables and end the worker."""
        ...


class WorkerPool:
    """Starts workers. One pool for the whole process, so that the component is verified and loaded once."""

    def __init__(
        self,
        *,
        key: bytes,
        cache: Path,
        max_idle: int = 8,
        progress: component.ReportProgress = lambda _: None,
    ) -> None:
        self._key = key
        self._cache = cache
        self._progress = progress
        self._starting = asyncio.Lock()
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._max_idle = max_idle
        self._idle: dict[IdleGuest, None] = {}
        """Guests that keep a worker and run nothing, the longest idle first."""

    @property
    def idle(self) -> int:
        """How many idle guests keep a worker."""
        return len(self._idle)

    def mark_idle(self, guest: IdleGuest) -> None:
        """Note that a guest keeps its worker and runs nothing; it may be evicted."""
        self._idle.pop(guest, None)
        self._idle[guest] = None

    def mark_busy(self, guest: IdleGuest) -> None:
        """Note that a guest runs again, or has no worker any more."""
        self._idle.pop(guest, None)

    async def prepare(self) -> None:
        """Build the component if there is none, and start the zygote."""
        async with self._starting:
            if self._running_control() is None:
                component.check_installed()
                await self._start_zygote(
                    await component.open_or_build(key=self._key, cache=self._cache, progress=self._progress)
                )

    async def start(self, setup: frames.Setup) -> Worker:
        """A new worker that has been sent its setup. It replies with Ready or Trapped. Raises EngineNotBuilt."""
        while len(self._idle) >= self._max_idle and self._idle:
            longest = next(iter(self._idle))
            self.mark_busy(longest)
            await longest.evict()
        async with self._starting:
            try:
                worker = await self._fork()
            except (OSError, EOFError) as problem:
                if self._zygote is not None and self._zygote.poll() is None:
                    raise GuestError(
                        f"the sandbox cannot start a process: {problem}",
                        hint="Close sessions, or raise the limits on processes and open files (ulimit -u, ulimit -n).",
                    ) from None
                worker = await self._fork()  # the zygote was killed; this starts a new one
        await worker.send(setup)
        return worker

    async def close(self) -> None:
        """End the zygote and with it every worker. Idempotent."""
        async with self._starting:
            await self._stop()

    async def _fork(self) -> Worker:
        control = await self._ensure_control()
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        report, their_report = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, their_report:
                socket.send_fds(control, [_READY], [theirs.fileno(), their_report.fileno()])
            report.setblocking(False)
            pidfd = await _receive_pidfd(loop, report)
        except BaseException:
            ours.close()
            report.close()
            raise
        reader, writer = await asyncio.open_connection(sock=ours)
        return Worker(reader, writer, report, pidfd)

    async def _ensure_control(self) -> socket.socket:
        if (running := self._running_control()) is not None:
            return running
        component.check_installed()
        image = await asyncio.to_thread(
            component.open_verified, self._cache, component.component_name(), self._key
        )
        if image is None:
            raise EngineNotBuilt(
                "the wasi sandbox must be built once; that takes about half a minute and is not charged",
                make_ready=self.prepare,
                hint="Run `holdfast sandbox build`.",
            )
        return await self._start_zygote(image)

    def _running_control(self) -> socket.socket | None:
        is_running = self._zygote is not None and self._zygote.poll() is None
        return self._control if is_running else None

    async def _start_zygote(self, image: int) -> socket.socket:
        """Start a zygote with this component, and close the descriptor."""
        try:
            await self._stop()
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._zygote = _spawn_zygote(theirs.fileno(), image)
        finally:
            os.close(image)
        control.setblocking(False)
        self._control = control
        try:
            async with asyncio.timeout(_START_SECONDS):
                reply = await asyncio.get_running_loop().sock_recv(control, 1 << 10)
        except TimeoutError:
            reply = b"its process does not answer"
        if reply != _READY:
            await self._stop()
            raise GuestError(
                f"the wasi sandbox did not start: {reply.decode(errors='replace') or 'its process ended at once'}",
                hint="Run `holdfast doctor`; `holdfast sandbox build` rebuilds the component.",
            )
        return control

    async def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._zygote is not None:
            try:
                await asyncio.to_thread(self._zygote.wait, _END_SECONDS)
            except subprocess.TimeoutExpired:
                self._zygote.kill()
                await asyncio.to_thread(self._zygote.wait)
            self._zygote = None


def _spawn_zygote(control: int, image: int) -> "subprocess.Popen[bytes]":
    command = [
        sys.executable,
        "-I",
        "-c",
        _ZYGOTE_PROGRAM,
        str(control),
        str(image),
        *component.search_paths(),
    ]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and program
        command,
        pass_fds=(control, image),
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal must reach only the host
    )


def _open_io_counters(pidfd: int) -> int:
    """A descriptor of the kernel's counters of what a process reads and writes; -1 if there are none."""
    try:
        text = Path(f"/proc/self/fdinfo/{pidfd}").read_text()
        process = int(text.partition("Pid:")[2].partition("\n")[0])
        return os.open(f"/proc/{process}/io", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return -1


async def _receive_pidfd(loop: asyncio.AbstractEventLoop, report: socket.socket) -> int:
    """The pidfd of a worker, which the zygote sends after the fork."""
    arrived = asyncio.Event()
    loop.add_reader(report, arrived.set)
    try:
        async with asyncio.timeout(_START_SECONDS):
            await arrived.wait()
        message, descriptors, _, _ = socket.recv_fds(report, 1, 1)
    finally:
        loop.remove_reader(report)
    if not message or not descriptors:
        raise EOFError("the limit on processes or open files is reached")
    return descriptors[0]
