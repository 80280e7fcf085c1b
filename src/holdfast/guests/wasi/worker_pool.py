"""Worker processes as the host sees them: started from one zygote, talked to over a socket, killed by handle."""

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

_ZYGOTE = (
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
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, report: socket.socket, handle: int
    ) -> None:
        self._reader, self._writer, self._report = reader, writer, report
        self._handle = handle
        self._counts = _opened_counts(handle)
        self._exit_status: int | None = None
        self._ending = asyncio.Lock()
        self.notes: tuple[str, ...] = ()

    async def send(self, frame: frames.ToWorker) -> None:
        """Send a frame; a broken connection shows at the next `read`."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(frames.packed(frame))
            await self._writer.drain()

    async def read(self) -> frames.FromWorker:
        """The next frame. Raises BrokenFrame."""
        return await frames.read(self._reader)

    def written_bytes(self) -> int:
        """What the process has handed to write calls so far; 0 where this kernel does not count."""
        if self._counts < 0:
            return 0
        try:
            counted = os.pread(self._counts, 1 << 10, 0)
            return int(counted.partition(b"wchar: ")[2].partition(b"\n")[0])
        except (OSError, ValueError):
            return 0

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended."""
        if self._handle < 0:
            return True
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        return bool(ended.poll(0))

    def kill(self) -> None:
        """End the process now. It is named by handle, so no other process can be hit."""
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    async def end(self) -> int:
        """Kill what is left and wait until it is gone. Returns the exit status, negative for a signal. Idempotent."""
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
        """What the zygote says of how the process ended; nothing comes where it died too, and its workers with it."""
        status = b""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                status = await asyncio.get_running_loop().sock_recv(self._report, _STATUS_BYTES)
        return int.from_bytes(status, "big", signed=True) if len(status) == _STATUS_BYTES else -signal.SIGKILL

    def _release(self) -> None:
        for descriptor in (self._handle, self._counts):
            if descriptor >= 0:
                os.close(descriptor)
        self._handle = self._counts = -1
        self._report.close()


class Tenant(Protocol):
    """Who holds a worker between runs."""

    async def retire(self) -> None:
        """Save what the worker holds, and end it."""
        ...


class WorkerPool:
    """Makes workers. One for the whole process: the component is proven and loaded once."""

    def __init__(
        self, *, key: bytes, cache: Path, max_idle: int = 8, progress: component.Progress = lambda _: None
    ) -> None:
        self._key = key
        self._cache = cache
        self._progress = progress
        self._starting = asyncio.Lock()
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._max_idle = max_idle
        self._idle: dict[Tenant, None] = {}
        """Tenants that hold a worker and do nothing, the longest idle first."""

    @property
    def idle(self) -> int:
        """How many workers wait for their tenant's next run."""
        return len(self._idle)

    def rest(self, tenant: Tenant) -> None:
        """This tenant's worker waits from now on, and may be asked for."""
        self._idle.pop(tenant, None)
        self._idle[tenant] = None

    def wake(self, tenant: Tenant) -> None:
        """This tenant's worker is at work, or gone."""
        self._idle.pop(tenant, None)

    async def prepare(self) -> None:
        """Build the component where there is none, and start the zygote."""
        async with self._starting:
            if self._running_control() is None:
                component.check_installed()
                await self._start_zygote(
                    await component.opened(key=self._key, cache=self._cache, progress=self._progress)
                )

    async def start(self, setup: frames.Setup) -> Worker:
        """A fresh worker that has been sent its setup. It answers with Ready or Trapped. Raises EngineUnready."""
        while len(self._idle) >= self._max_idle and self._idle:
            longest = next(iter(self._idle))
            self.wake(longest)
            await longest.retire()
        async with self._starting:
            try:
                worker = await self._fork()
            except (OSError, EOFError) as problem:
                if self._zygote is not None and self._zygote.poll() is None:
                    raise GuestError(
                        f"no process can be started for the sandbox: {problem}",
                        hint="Close sessions, or raise the limits on processes and open files (ulimit -u, ulimit -n).",
                    ) from None
                worker = await self._fork()  # the zygote was killed; a new one is as good
        await worker.send(setup)
        return worker

    async def close(self) -> None:
        """End the zygote, and with it every worker. Idempotent."""
        async with self._starting:
            await self._stop()

    async def _fork(self) -> Worker:
        control = await self._ensured_control()
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        report, their_report = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, their_report:
                socket.send_fds(control, [_READY], [theirs.fileno(), their_report.fileno()])
            report.setblocking(False)
            handle = await _received_handle(loop, report)
        except BaseException:
            ours.close()
            report.close()
            raise
        reader, writer = await asyncio.open_connection(sock=ours)
        return Worker(reader, writer, report, handle)

    async def _ensured_control(self) -> socket.socket:
        if (running := self._running_control()) is not None:
            return running
        component.check_installed()
        image = await asyncio.to_thread(
            component.open_proven, self._cache, component.component_name(), self._key
        )
        if image is None:
            raise EngineNotBuilt(
                "the wasi sandbox is built first, once; it takes about half a minute and is not charged",
                make_ready=self.prepare,
                hint="Run `holdfast sandbox build`.",
            )
        return await self._start_zygote(image)

    def _running_control(self) -> socket.socket | None:
        is_running = self._zygote is not None and self._zygote.poll() is None
        return self._control if is_running else None

    async def _start_zygote(self, image: int) -> socket.socket:
        """A zygote with this component, which is closed here."""
        try:
            await self._stop()
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._zygote = _zygote(theirs.fileno(), image)
        finally:
            os.close(image)
        control.setblocking(False)
        self._control = control
        try:
            async with asyncio.timeout(_START_SECONDS):
                told = await asyncio.get_running_loop().sock_recv(control, 1 << 10)
        except TimeoutError:
            told = b"its process does not answer"
        if told != _READY:
            await self._stop()
            raise GuestError(
                f"the wasi sandbox does not start: {told.decode(errors='replace') or 'its process ended at once'}",
                hint="Run `holdfast doctor`; `holdfast sandbox build` makes the component anew.",
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


def _zygote(control: int, image: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-I", "-c", _ZYGOTE, str(control), str(image), *component.search_paths()]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and program
        command,
        pass_fds=(control, image),
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal is for the host
    )


def _opened_counts(handle: int) -> int:
    """The kernel's account of what a process reads and writes; -1 where there is none."""
    try:
        told = Path(f"/proc/self/fdinfo/{handle}").read_text()
        process = int(told.partition("Pid:")[2].partition("\n")[0])
        return os.open(f"/proc/{process}/io", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return -1


async def _received_handle(loop: asyncio.AbstractEventLoop, report: socket.socket) -> int:
    """The worker's pidfd, which the zygote sends as soon as it has forked."""
    arrived = asyncio.Event()
    loop.add_reader(report, arrived.set)
    try:
        async with asyncio.timeout(_START_SECONDS):
            await arrived.wait()
        message, descriptors, _, _ = socket.recv_fds(report, 1, 1)
    finally:
        loop.remove_reader(report)
    if not message or not descriptors:
        raise EOFError("the system has no room for another one")
    return descriptors[0]
