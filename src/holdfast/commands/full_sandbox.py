"""The full sandbox, host side: namespaces, an overlay over the workspace, Landlock and seccomp. One for each session.

The init process (`init/init_main.py`) holds the namespaces; this class asks it over a socket. The layers live in the state
folder and stay when the sandbox closes.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ

from holdfast.commands.channel import Channel, Ended
from holdfast.commands.contract import (
    CollectedChanges,
    CommandOutcome,
    CommandRequest,
    OnOutput,
    ProcessStatus,
    SandboxStatus,
    StagedFile,
)
from holdfast.commands.environment import build_environment
from holdfast.commands.layers.collect import collect, read_version
from holdfast.commands.layers.layer import WorkspaceLayer
from holdfast.commands.layout import HOME, Layout, layout_of
from holdfast.commands.output import InputWriter, OutputReader
from holdfast.commands.settings import SandboxSettings
from holdfast.commands.toolchains import find_toolchains
from holdfast.core import JsonObject
from holdfast.core.errors import CommandError
from holdfast.process.bare_python import stub_packages

_INIT = (
    f"{stub_packages('holdfast.commands', 'holdfast.commands.init')}"
    "from holdfast.commands.init.init_main import main\nmain()\n"
)
_INOTIFY_INSTANCES = 48
_ROWS, _COLUMNS = 24, 80
_STOP_SECONDS = 0.5
_END_SECONDS = 10.0
_ALWAYS_WRITABLE = ("/tmp", "/run", "/dev/shm")  # noqa: S108 - the sandbox's own
_READ_SIZE = 1 << 16


class _Run:
    """One command that the host waits for."""

    def __init__(self, id: int, reader: OutputReader, writer: InputWriter | None) -> None:
        self.id = id
        self.reader = reader
        self.writer = writer
        self.started = time.monotonic()
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.is_timed_out = False

    async def outcome(self) -> CommandOutcome:
        """Wait for the end and say how it was."""
        ended = await asyncio.shield(self.ended)
        return CommandOutcome(
            code=ended.code if ended.code >= 0 else None,
            signal=_signal_name(-ended.code) if ended.code < 0 else "",
            is_timed_out=self.is_timed_out,
            stopped_because=ended.stopped_because,
            output_bytes=self.reader.total_bytes,
            left_processes=ended.left,
            seconds=time.monotonic() - self.started,
            cpu_seconds=ended.cpu_seconds,
            memory_mb=ended.memory_mb,
        )


class _Background:
    """A background process."""

    def __init__(self, name: str, argv: tuple[str, ...], run: _Run) -> None:
        self.name = name
        self.argv = argv
        self.run = run
        self.started_ms = time.time_ns() // 1_000_000
        self.outcome: CommandOutcome | None = None


class FullSandbox:
    """A sandbox of the tier `full`. Opened by `open_full_sandbox`."""

    def __init__(
        self,
        *,
        workspace: Path,
        layer: WorkspaceLayer,
        settings: SandboxSettings,
        status: SandboxStatus,
        init: "subprocess.Popen[bytes]",
    ) -> None:
        self._workspace = workspace
        self._layer = layer
        self._settings = settings
        self._status = status
        self._init = init
        self._channel: Channel | None = None
        self._environment: dict[str, str] = {}
        self._runs: dict[int, _Run] = {}
        self._background: dict[str, _Background] = {}
        self._collected: dict[str, str] = {}
        self._feeding = asyncio.Lock()
        self._is_closed = False
        self._umask = _current_umask()

    @property
    def status(self) -> SandboxStatus:
        """The tier and the walls in force."""
        return self._status

    async def attach(
        self, connection: socket.socket, configuration: JsonObject, environment: dict[str, str]
    ) -> None:
        """Configure the init process and wait until the sandbox stands. Raises CommandError."""
        self._environment = environment
        self._channel = Channel(connection, on_ended=self._on_ended, on_gone=self._on_gone)
        await self._channel.configure(configuration)

    async def show(self, staged: Sequence[StagedFile], *, hidden: Collection[str] = ()) -> None:
        """Make programs see base plus `staged`, without the `hidden` files. Drops earlier changes except scratch."""
        async with self._feeding:
            if self._runs:
                await self._show_beside_programs(staged, hidden)
                return
            await self._ask.ask("unmount")
            try:
                await asyncio.to_thread(self._layer.show, staged, hidden)
            except OSError as error:
                raise CommandError(f"the staged files cannot be shown to programs: {error}") from error
            finally:
                await self._ask.ask("mount")

    async def run(self, request: CommandRequest, *, on_output: OnOutput) -> CommandOutcome:
        """Run a program to its end and stop what it left behind. Cancelling stops its whole process tree first."""
        run = await self._start(request, on_output, keeps_input=False)
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return await run.outcome()
        except TimeoutError:
            run.is_timed_out = True
            await self._end(run)
            return await run.outcome()
        except asyncio.CancelledError:
            await asyncio.shield(self._end(run))
            raise

    async def start(self, request: CommandRequest, *, name: str, on_output: OnOutput) -> str:
        """Start a background process and return its id."""
        run = await self._start(request, on_output, keeps_input=True)
        process = f"p{run.id}"
        self._background[process] = _Background(name, request.argv, run)
        return process

    async def write(self, process: str, data: bytes) -> None:
        """Write to the standard input or terminal of a background process."""
        background = self._find(process)
        if background.run.writer is None or background.run.ended.done():
            raise CommandError(f"the process {background.name!r} has ended")
        try:
            await background.run.writer.write(data)
        except OSError as error:
            raise CommandError(f"the process {background.name!r} takes no input: {error.strerror}") from error

    async def signal(self, process: str, name: str) -> None:
        """Send a signal (`SIGINT`, `SIGTERM`, ...) to a background process."""
        number = getattr(signal.Signals, name, None)
        if not isinstance(number, signal.Signals):
            raise CommandError(f"{name!r} is not a signal", hint="use a name such as SIGINT or SIGTERM")
        await self._ask.ask("signal", run=self._find(process).run.id, number=int(number))

    async def stop(self, process: str) -> CommandOutcome:
        """Stop a background process and everything it started."""
        run = self._find(process).run
        if not run.ended.done():
            await self._ask.ask("signal", run=run.id, number=int(signal.SIGTERM))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(run.ended), _STOP_SECONDS)
            await self._end(run)
        return await run.outcome()

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The background processes, running or ended."""
        return tuple(
            ProcessStatus(
                id=id,
                name=each.name,
                argv=each.argv,
                is_running=not each.run.ended.done(),
                started_ms=each.started_ms,
            )
            for id, each in self._background.items()
        )

    async def collect(self) -> CollectedChanges:
        """What programs changed since the last `show`, read by descriptors while every process is stopped."""
        async with self._feeding:
            is_running = bool(self._runs)
            if is_running:
                await self._ask.ask("freeze")
            try:
                changes = await asyncio.to_thread(collect, self._layer)
            except OSError as error:
                raise CommandError(f"the changes of programs cannot be read: {error}") from error
            finally:
                if is_running and self._ask.is_open:
                    await self._ask.ask("thaw")
            self._collected = {effect.path: effect.digest for effect in changes.effects if effect.digest}
            return changes

    def read_changed(self, path: str) -> bytes:
        """The content of a collected effect. Raises CommandError if it is no longer what was collected."""
        found = read_version(self._layer.descriptor, path)
        if found is None or found[1] != self._collected.get(path):
            raise CommandError(f"{path!r} is no longer what was collected", hint="collect the changes again")
        return found[0]

    async def listen(self) -> tuple[socket.socket, int]:
        """A socket that listens on the sandbox's own loopback, and its port: programs reach the host's proxy by it."""
        reply = await self._ask.ask("listen")
        listening = socket.socket(fileno=reply.descriptors[0])
        listening.setblocking(False)
        return listening, reply.port

    async def connect(self, port: int) -> socket.socket:
        """A connection from the host to a port of the sandbox's own loopback, for previews."""
        reply = await self._ask.ask("connect", port=port)
        connection = socket.socket(fileno=reply.descriptors[0])
        connection.setblocking(False)
        return connection

    async def drop_scratch(self) -> None:
        """Empty scratch: after a rewind it belongs to no restore point."""
        for process in [id for id, each in self._background.items() if not each.run.ended.done()]:
            await self.stop(process)
        async with self._feeding:
            await self._ask.ask("unmount")
            try:
                await asyncio.to_thread(self._layer.drop_scratch)
            finally:
                await self._ask.ask("mount")

    async def close(self) -> None:
        """Stop every process and remove the mounts. The layers stay for the next opening."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._channel is not None:
            self._channel.close()
        await asyncio.to_thread(self._init.wait)
        self._layer.close()

    @property
    def _ask(self) -> Channel:
        if self._channel is None or self._is_closed:
            raise CommandError("the sandbox is closed")
        return self._channel

    async def _start(self, request: CommandRequest, on_output: OnOutput, *, keeps_input: bool) -> _Run:
        id = self._ask.new_id()
        async with self._feeding:
            given, writer, output, reading = await self._streams(request, keeps_input=keeps_input)
            run = _Run(id, OutputReader(reading, on_output), writer)
            self._runs[id] = run
            try:
                await self._ask.ask(
                    "run",
                    id=id,
                    descriptors=[*given, output],
                    argv=list(request.argv),
                    cwd=str(self._workspace / request.cwd),
                    environment={**self._environment, **self._terminal(request), **request.environment},
                    has_terminal=request.has_terminal,
                    limits=self._limits(),
                    umask=self._umask,
                )
            except BaseException:
                self._runs.pop(id, None)
                run.reader.close()
                if writer is not None:
                    writer.close()
                raise
            finally:
                for descriptor in {*given, output}:
                    os.close(descriptor)
        return run

    async def _streams(
        self, request: CommandRequest, *, keeps_input: bool
    ) -> tuple[list[int], InputWriter | None, int, int]:
        """The program's input (if any) and output, and the host's ends: (inputs, writer, output, reading)."""
        if request.has_terminal:
            controller, terminal = (await self._ask.ask("terminal")).descriptors
            ioctl(controller, TIOCSWINSZ, pack("HHHH", _ROWS, _COLUMNS, 0, 0))
            writer = InputWriter(os.dup(controller))
            if request.stdin:
                await writer.write(request.stdin)
            return [terminal], writer, terminal, controller
        reading, output = os.pipe2(os.O_CLOEXEC)
        if request.stdin is not None and not keeps_input:
            content = os.memfd_create("stdin", os.MFD_CLOEXEC)
            view = memoryview(request.stdin)
            while view:
                view = view[os.write(content, view) :]
            os.lseek(content, 0, os.SEEK_SET)
            return [content], None, output, reading
        if keeps_input:
            stdin, writing = os.pipe2(os.O_CLOEXEC)
            return [stdin], InputWriter(writing), output, reading
        return [], None, output, reading

    @staticmethod
    def _terminal(request: CommandRequest) -> dict[str, str]:
        return {"TERM": "xterm-256color"} if request.has_terminal else {}

    def _limits(self) -> JsonObject:
        return {
            "NPROC": self._settings.processes,
            "FSIZE": self._settings.file_mb << 20,
            "NOFILE": self._settings.open_files,
            # Not 0: a handler that the kernel pipes core dumps to ignores 0, but not 1.
            "CORE": 1,
            "DATA": self._settings.memory_mb << 20,
        }

    async def _end(self, run: _Run) -> None:
        """End a command with all its processes and wait until they are gone."""
        if run.ended.done():
            return
        if self._channel is not None and self._channel.is_open:
            await self._channel.ask("stop", run=run.id)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(run.ended), _END_SECONDS)

    def _on_ended(self, ended: Ended) -> None:
        run = self._runs.pop(ended.run, None)
        if run is None:
            return
        run.reader.finish()
        if run.writer is not None:
            run.writer.close()
        if not run.ended.done():
            run.ended.set_result(ended)

    def _on_gone(self) -> None:
        """The init process has ended, and the kernel killed every program."""
        for id in list(self._runs):
            self._on_ended(Ended(run=id, code=-signal.SIGKILL))

    def _find(self, process: str) -> _Background:
        background = self._background.get(process)
        if background is None:
            raise CommandError(f"there is no background process {process!r}")
        return background

    async def _show_beside_programs(self, staged: Sequence[StagedFile], hidden: Collection[str]) -> None:
        raise CommandError("a background process runs")


async def open_full_sandbox(
    workspace: Path, state: Path, *, settings: SandboxSettings, status: SandboxStatus
) -> FullSandbox:
    """Open a full sandbox over a workspace; the layers are in the state folder. Raises CommandError."""
    for folder in ("workspace/upper", "workspace/work", "home/upper", "home/work", "root"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    toolchains = find_toolchains(settings.toolchains, workspace=workspace)
    layout = layout_of(toolchains.folders, workspace=workspace)
    ours, init = _start_init()
    layer = WorkspaceLayer(state / "workspace" / "upper", workspace)
    sandbox = FullSandbox(workspace=workspace, layer=layer, settings=settings, status=status, init=init)
    try:
        environment = build_environment(toolchains, added=settings.environment)
        await sandbox.attach(ours, _configuration(workspace, state, layout, settings), environment)
    except BaseException:
        await sandbox.close()
        raise
    return sandbox


def _start_init() -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """Start the init process; its configuration goes over the socket, because arguments show in lists of processes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        init = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", _INIT],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
        )
    return ours, init


def _configuration(workspace: Path, state: Path, layout: Layout, settings: SandboxSettings) -> JsonObject:
    return {
        "root": str(state / "root"),
        "workspace": str(workspace),
        "read_only": [list(each) for each in layout.read_only],
        "links": [list(each) for each in layout.links],
        "files": dict(layout.files),
        "empty_folders": [str(workspace), HOME],
        "layers": {
            "workspace-base": str(workspace),
            "workspace-state": str(state / "workspace"),
            "home-state": str(state / "home"),
        },
        "fixed_overlays": [{"at": HOME, "name": "home", "has_base": False}],
        "overlays": [{"at": str(workspace), "name": "workspace", "has_base": True}],
        "writable": [*_ALWAYS_WRITABLE, HOME, str(workspace)],
        "temporary_mb": settings.temporary_mb,
        "inotify_instances": _INOTIFY_INSTANCES,
        "memory_mb": settings.memory_mb,
        "disk_mb": settings.disk_mb,
        "without": list(settings.removed_walls),
    }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _current_umask() -> int:
    """The umask of this process; reading it any other way would change it for a moment, in every thread."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
