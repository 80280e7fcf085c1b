"""A sandbox of the operating system, host side: it asks an init process over a socket and feeds the layer of the workspace.

The tiers differ in their init process and their layer: an overlay in namespaces (`init/init_main.py`), or a copy without
(`init/copy_main.py`). The layers live in the state folder and stay when the sandbox closes.
"""

import asyncio
import contextlib
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

from holdfast.commands.contract import (
    CollectedChanges,
    CommandOutcome,
    CommandRequest,
    OnOutput,
    ProcessStatus,
    SandboxStatus,
    StagedFile,
)
from holdfast.commands.copy.layer import CopyLayer
from holdfast.commands.full.channel import Channel, Ended
from holdfast.commands.full.feed import show_beside_programs
from holdfast.commands.full.streams import open_streams
from holdfast.commands.layers.collect import collect, read_version
from holdfast.commands.layers.layer import WorkspaceLayer
from holdfast.commands.output import OutputReader
from holdfast.commands.program_run import ProgramRun, current_umask
from holdfast.commands.settings import SandboxSettings
from holdfast.core import JsonObject
from holdfast.core.errors import CommandError

_STOP_SECONDS = 0.5
_END_SECONDS = 10.0


class SystemSandbox:
    """Runs programs below an init process. Opened by `open_full_sandbox` or `open_copy_sandbox`."""

    def __init__(
        self,
        *,
        workspace: Path,
        layer: WorkspaceLayer | CopyLayer,
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
        self._runs: dict[int, ProgramRun] = {}
        self._background: dict[str, ProgramRun] = {}
        self._collected: dict[str, str] = {}
        self._mounts = asyncio.Lock()
        """Held while the overlay is mounted again, and while a program starts."""
        self._is_closed = False
        self._umask = current_umask()

    @property
    def status(self) -> SandboxStatus:
        """The tier and the walls in force."""
        return self._status

    async def attach(
        self, connection: socket.socket, configuration: JsonObject, environment: dict[str, str]
    ) -> None:
        """Configure the init process and wait until the sandbox is ready. Raises CommandError."""
        self._environment = environment
        self._channel = Channel(
            connection, on_ended=self._on_ended, on_ports=self._on_ports, on_gone=self._on_gone
        )
        await self._channel.configure(configuration)

    async def show(self, staged: Sequence[StagedFile], *, hidden: Collection[str] = ()) -> None:
        """Make programs see base plus `staged`, without the `hidden` files. Drops earlier changes except scratch."""
        async with self._mounts:
            try:
                if self._runs:
                    async with self._frozen():
                        await self._show_beside_programs(staged, hidden)
                else:
                    async with self._unmounted():
                        await asyncio.to_thread(self._layer.show, staged, hidden)
            except OSError as error:
                raise CommandError(f"the staged files cannot be shown to programs: {error}") from error

    async def run(self, request: CommandRequest, *, on_output: OnOutput) -> CommandOutcome:
        """Run a program to its end and stop what it left behind. Cancelling stops its whole process tree first."""
        run = await self._start(request, name=request.argv[0], on_output=on_output, keeps_input=False)
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return await asyncio.shield(run.outcome)
        except TimeoutError:
            run.is_timed_out = True
            return await self._end(run)
        except asyncio.CancelledError:
            await asyncio.shield(self._end(run))
            raise

    async def start(
        self,
        request: CommandRequest,
        *,
        name: str,
        on_output: OnOutput,
        channel: socket.socket | None = None,
    ) -> str:
        """Start a background process and return its id. A `channel` to the host becomes its standard input."""
        run = await self._start(request, name=name, on_output=on_output, keeps_input=True, channel=channel)
        self._background[run.status.id] = run
        return run.status.id

    async def write(self, process: str, data: bytes) -> None:
        """Write to the standard input or terminal of a background process."""
        run = self._find(process)
        if run.writer is None or run.has_ended:
            raise CommandError(f"the process {run.name!r} has ended")
        try:
            await run.writer.write(data)
        except OSError as error:
            raise CommandError(f"the process {run.name!r} takes no input: {error.strerror}") from error

    async def signal(self, process: str, name: str) -> None:
        """Send a signal (`SIGINT`, `SIGTERM`, ...) to a background process."""
        number = getattr(signal.Signals, name, None)
        if not isinstance(number, signal.Signals):
            raise CommandError(f"{name!r} is not a signal", hint="use a name such as SIGINT or SIGTERM")
        await self._ask.ask("signal", run=self._find(process).id, number=int(number))

    async def stop(self, process: str) -> CommandOutcome:
        """Stop a background process and everything it started."""
        run = self._find(process)
        if not run.has_ended:
            await self._ask.ask("signal", run=run.id, number=int(signal.SIGTERM))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await asyncio.shield(run.outcome)
        outcome = await self._end(run)
        if run.has_channel:
            del self._background[process]
        return outcome

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The background processes, running or ended."""
        return tuple(run.status for run in self._background.values())

    async def collect(self) -> CollectedChanges:
        """What programs changed since the last `show` or `collect`, read by descriptors while every process is stopped."""
        async with self._mounts:
            try:
                async with self._frozen():
                    changes = await asyncio.to_thread(self._collect)
            except OSError as error:
                raise CommandError(f"the changes of programs cannot be read: {error}") from error
        self._collected = {effect.path: effect.digest for effect in changes.effects if effect.digest}
        return changes

    def read_changed(self, path: str) -> bytes:
        """The content of a collected effect. Raises CommandError if it is no longer what was collected."""
        found = read_version(self._layer.descriptor, path)
        if found is None or found[1] != self._collected.get(path):
            raise CommandError(f"{path!r} is no longer what was collected", hint="collect the changes again")
        return found[0]

    async def listen(self, port: int = 0) -> tuple[socket.socket, int]:
        """A socket that listens on the sandbox's own loopback, and its port: programs reach the host by it. 0: any port."""
        reply = await self._ask.ask("listen", port=port)
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
        """Empty scratch: after a rewind it belongs to no restore point. Background processes, which use it, are stopped."""
        for process, run in self._background.items():
            if not run.has_ended:
                await self.stop(process)
        async with self._mounts, self._unmounted():
            try:
                await asyncio.to_thread(self._layer.drop_scratch)
            except OSError as error:
                raise CommandError(f"scratch cannot be removed: {error}") from error

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

    async def _start(
        self,
        request: CommandRequest,
        *,
        name: str,
        on_output: OnOutput,
        keeps_input: bool,
        channel: socket.socket | None = None,
    ) -> ProgramRun:
        async with self._mounts:
            init = self._ask
            streams = await open_streams(request, init, keeps_input=keeps_input, input_socket=channel)
            reader = OutputReader(streams.reading, on_output)
            run = ProgramRun(
                init.new_id(),
                name=name,
                argv=request.argv,
                reader=reader,
                writer=streams.writer,
                has_channel=channel is not None,
            )
            self._runs[run.id] = run
            try:
                await init.ask("run", id=run.id, descriptors=streams.given, **self._request(request))
            except BaseException:
                self._runs.pop(run.id, None)
                run.discard()
                raise
            finally:
                streams.close_given()
        return run

    def _request(self, request: CommandRequest) -> JsonObject:
        terminal = {"TERM": "xterm-256color"} if request.has_terminal else {}
        return {
            "argv": list(request.argv),
            "cwd": str(self._workspace / request.cwd),
            "environment": {**self._environment, **terminal, **request.environment},
            "has_terminal": request.has_terminal,
            "umask": self._umask,
            "limits": {
                # Without a namespace the limit would count all processes of the person.
                **({"NPROC": self._settings.processes} if self._status.tier == "full" else {}),
                "FSIZE": self._settings.file_mb << 20,
                "NOFILE": self._settings.open_files,
                # Not 0: a handler that the kernel pipes core dumps to ignores 0, but not 1.
                "CORE": 1,
                "DATA": self._settings.memory_mb << 20,
            },
        }

    async def _end(self, run: ProgramRun) -> CommandOutcome:
        """End a program with all that it started; returns when they are gone."""
        if not run.has_ended and self._ask.is_open:
            await self._ask.ask("stop", run=run.id)
        try:
            async with asyncio.timeout(_END_SECONDS):
                return await asyncio.shield(run.outcome)
        except TimeoutError:
            raise CommandError(f"the program {run.name!r} cannot be stopped") from None

    @contextlib.asynccontextmanager
    async def _frozen(self) -> AsyncIterator[None]:
        """Stop every program for a moment."""
        if not self._runs:
            yield
            return
        await self._ask.ask("freeze")
        try:
            yield
        finally:
            if self._ask.is_open:
                await self._ask.ask("thaw")

    @contextlib.asynccontextmanager
    async def _unmounted(self) -> AsyncIterator[None]:
        """Unmount the overlay for a moment, so that the layer can be changed from outside."""
        await self._ask.ask("unmount")
        try:
            yield
        finally:
            if self._ask.is_open:
                await self._ask.ask("mount")

    async def _show_beside_programs(self, staged: Sequence[StagedFile], hidden: Collection[str]) -> None:
        if isinstance(self._layer, WorkspaceLayer):
            await show_beside_programs(self._layer, self._ask, staged, hidden)
        else:
            await asyncio.to_thread(self._layer.show, staged, hidden)

    def _collect(self) -> CollectedChanges:
        changes = collect(self._layer) if isinstance(self._layer, WorkspaceLayer) else self._layer.collect()
        self._layer.mark_collected(changes.effects)
        return changes

    def _on_ended(self, ended: Ended) -> None:
        run = self._runs.pop(ended.run, None)
        if run is not None:
            run.end(ended)

    def _on_ports(self, ports: dict[int, tuple[int, ...]]) -> None:
        for run in self._runs.values():
            run.ports = ports.get(run.id, ())

    def _on_gone(self) -> None:
        """The init process has ended, and the kernel killed every program."""
        for id in list(self._runs):
            self._on_ended(Ended(run=id, code=-signal.SIGKILL))

    def _find(self, process: str) -> ProgramRun:
        run = self._background.get(process)
        if run is None:
            raise CommandError(f"there is no background process {process!r}")
        return run
