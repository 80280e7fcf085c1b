"""The `shell.*` tools: runs judged commands in the session's sandbox, and hands what they changed to the gate.

This toolset cannot write to the workspace. Everything it needs from above is handed in: `settle` judges and applies what a
program changed, `network` lets programs connect to judged hosts, `keep` stores the output.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from holdfast.commands.background import BackgroundProcesses
from holdfast.commands.command_output import CommandOutput, OutputDecoder
from holdfast.commands.connected_process import ConnectedProcess
from holdfast.commands.contract import CommandOutcome, CommandRequest, CommandSandbox, NotCollected
from holdfast.commands.session_sandbox import RecordEvent, SessionSandbox
from holdfast.commands.shell_settings import ShellSettings
from holdfast.commands.tools import MAX_TIMEOUT_SECONDS, MAX_WAIT_SECONDS, PYTHON_TOOL, SHELL_TOOLS
from holdfast.core import (
    Amount,
    BlobRef,
    Call,
    CallId,
    Change,
    FileEffect,
    Json,
    JudgedEffect,
    Performed,
    SettledEffects,
    Tool,
    Value,
    pluralize,
)
from holdfast.core.errors import CommandError, InvalidInput, ToolFailed
from holdfast.core.events import CommandEnded, CommandStarted

MAX_LISTED = 200
"""Changed paths listed in a result; the rest are counted."""
_MARGIN_SECONDS = 120.0
"""Time for what surrounds a program: opening the sandbox, collecting, judging and writing."""


_UNFINISHED = "the run ended before it was closed"
_DEAD = "the code did not come to its end, and the file may be half-written"


class SettleEffects(Protocol):
    """Judges what a command changed, and writes, stages or drops it. The gate implements it."""

    async def __call__(
        self, call: Call, effects: Sequence[FileEffect], read: Callable[[str], bytes], *, is_staged: bool
    ) -> SettledEffects:
        """With `is_staged`, what the policy allows is staged as well."""
        ...


class JudgedHost(Value):
    """A host that a program asked for, and the verdict."""

    host: str
    verdict: str


class CommandNetwork(Protocol):
    """Lets the programs of a sandbox connect to hosts that the policy allows."""

    async def serve(
        self, sandbox: CommandSandbox, call: Call, *, is_background: bool = False
    ) -> tuple[Mapping[str, str], "HostLog"]:
        """The variables by which the programs of a call find their proxy, and the hosts that they ask for."""
        ...


class HostLog(Protocol):
    """The hosts that the programs of one call asked for."""

    def judged(self) -> tuple[JudgedHost, ...]:
        """Every host that was judged for the call."""
        ...


StoreBlob = Callable[[bytes], Awaitable[str]]
"""Stores a blob and returns its SHA-256."""
OnCommandOutput = Callable[[CallId, str], None]
"""Receives the output of a program while it runs, decoded and not escaped."""


class _Arguments(Value, forbid_unknown_fields=True):
    """The arguments of all operations; `tools` defines which operation takes which."""

    argv: list[str] | None = None
    script: str | None = None
    cwd: str = "."
    stdin: str | None = None
    timeout_s: float | None = None
    tty: bool = False
    env: dict[str, str] = msgspec.field(default_factory=dict)
    hosts: list[str] = msgspec.field(default_factory=list)
    name: str = ""
    ready: "_Ready | None" = None
    process: str = ""
    wait_s: float = 0.0
    after: int = 0
    input: str | None = None
    signal: str | None = None
    code: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The program to run. Raises InvalidInput."""
        if (self.argv is None) == (self.script is None):
            raise InvalidInput("give argv or script, and not both")
        return tuple(self.argv) if self.argv is not None else ("bash", "-c", self.script or "")


class _Ready(Value, forbid_unknown_fields=True):
    """When a background process counts as ready."""

    port: int | None = None
    text: str | None = None
    within_s: float = 30.0


class CommandToolset:
    """Executes `shell.*` calls."""

    def __init__(
        self,
        sandbox: SessionSandbox,
        *,
        settle: SettleEffects,
        keep: StoreBlob,
        record: RecordEvent,
        redact: Callable[[bytes], bytes],
        settings: ShellSettings,
        network: CommandNetwork | None = None,
        on_output: OnCommandOutput = lambda _call, _text: None,
        interpreter: tuple[str, ...] = (),
    ) -> None:
        """`interpreter` is the command that starts the project's Python for code; without it there is no `shell.python`."""
        self._sandbox = sandbox
        self._settle = settle
        self._keep = keep
        self._record = record
        self._redact = redact
        self._settings = settings
        self._network = network
        self._background = BackgroundProcesses(sandbox, shown_bytes=settings.output_kb << 10)
        self.on_output = on_output
        self._interpreter = interpreter
        self.connected: dict[str, ConnectedProcess] = {}
        """The interpreters that run, by the id of their process."""

    def tools(self) -> tuple[Tool, ...]:
        return (*SHELL_TOOLS, PYTHON_TOOL) if self._interpreter else SHELL_TOOLS

    def time_limit(self, call: Call) -> float | None:
        """What the call itself allows, and some time for what surrounds the program."""
        asked = call.arguments.get("timeout_s")
        seconds = float(asked) if isinstance(asked, int | float) else self._settings.timeout_seconds
        return min(max(seconds, MAX_WAIT_SECONDS), MAX_TIMEOUT_SECONDS) + _MARGIN_SECONDS

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Execute one operation."""
        try:
            arguments = msgspec.convert(call.arguments, _Arguments)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{call.operation}: {error}") from None
        match call.operation:
            case "shell.run":
                return await self._run(call, arguments, is_staged=is_staged)
            case "shell.start":
                return await self._start(call, arguments, is_staged=is_staged)
            case "shell.read":
                return await self._read(call, arguments, is_staged=is_staged)
            case "shell.write":
                return await self._write(arguments)
            case "shell.stop":
                return await self._stop(call, arguments, is_staged=is_staged)
            case "shell.python" if self._interpreter:
                return await self._start_python(call, arguments, is_staged=is_staged)
            case _:
                raise ToolFailed(f"there is no operation {call.operation!r}")

    async def _run(self, call: Call, arguments: _Arguments, *, is_staged: bool) -> Performed:
        argv = arguments.command
        output, decode = self._new_output(), OutputDecoder()

        def on_output(data: bytes) -> None:
            output.add(data)
            self.on_output(call.id, decode(data))

        async with self._sandbox.use() as sandbox:
            before = await self._collect_background(call, sandbox, is_staged=is_staged)
            await self._sandbox.show_workspace(sandbox)
            async with self._hosts(call, sandbox) as (environment, judged_hosts):
                self._record(_started(call, arguments, argv))
                request = self._request(arguments, argv, environment)
                outcome = await sandbox.run(request, on_output=on_output)
            changed = await self._collect(call, sandbox, is_staged=is_staged)
        blob = await self._record_end(call, outcome, output)
        result = _result(outcome, output, blob, before.plus(changed), judged_hosts())
        return changed.performed(result, before)

    async def _start(self, call: Call, arguments: _Arguments, *, is_staged: bool) -> Performed:
        argv = arguments.command
        async with self._sandbox.use() as sandbox:
            before = await self._collect_background(call, sandbox, is_staged=is_staged)
            await self._sandbox.show_workspace(sandbox)
            async with self._hosts(call, sandbox, is_background=True) as (environment, _):
                request = self._request(arguments, argv, environment)
                name = arguments.name or os.path.basename(argv[0])
                process = await self._background.start(sandbox, request, name=name)
            self._record(_started(call, arguments, argv, process=process, name=name))
        ready = arguments.ready
        is_ready = True
        if ready is not None and (ready.port is not None or ready.text is not None):
            is_ready = await self._background.wait_ready(
                process, port=ready.port, text=ready.text, seconds=min(ready.within_s, MAX_WAIT_SECONDS)
            )
        found = self._background.status(process)
        result: Json = {
            "process": process,
            "output": self._background.output(process).shown,
            "ports": list(found.ports),
            "is_running": found.is_running,
            "is_ready": is_ready and found.is_running,
        }
        return before.performed(result)

    async def _read(self, call: Call, arguments: _Arguments, *, is_staged: bool) -> Performed:
        await self._background.wait_output(
            arguments.process, after=arguments.after, seconds=min(arguments.wait_s, MAX_WAIT_SECONDS)
        )
        async with self._sandbox.use() as sandbox:
            found = self._background.status(arguments.process)
            changed = await self._collect_background(call, sandbox, is_staged=is_staged)
        output = self._background.output(arguments.process)
        result: Json = {
            "output": output.since(arguments.after),
            "next": min(output.size, len(output.kept)),
            "is_running": found.is_running,
            "code": found.outcome.code if found.outcome is not None else None,
            "signal": found.outcome.signal if found.outcome is not None else "",
            **changed.listed(),
        }
        return changed.performed(result)

    async def _write(self, arguments: _Arguments) -> Performed:
        if (arguments.input is None) == (arguments.signal is None):
            raise InvalidInput("give input or signal, and not both")
        sandbox = self._background.sandbox_of(arguments.process)
        if arguments.signal is not None:
            await sandbox.signal(arguments.process, arguments.signal)
        else:
            await sandbox.write(arguments.process, (arguments.input or "").encode())
        return Performed()

    async def _stop(self, call: Call, arguments: _Arguments, *, is_staged: bool) -> Performed:
        self._background.status(arguments.process)
        async with self._sandbox.use() as sandbox:
            outcome = await sandbox.stop(arguments.process)
            connected = self.connected.get(arguments.process)
            if connected is not None and connected.is_dead:
                changed = await self._drop(sandbox)
            else:
                unfinished = connected.unfinished if connected is not None else frozenset()
                changed = await self._collect(call, sandbox, is_staged=is_staged, unfinished=unfinished)
        output = self._background.output(arguments.process)
        if connected is not None:
            del self.connected[arguments.process]
            connected.close()
            self._background.forget(arguments.process)
        blob = await self._record_end(call, outcome, output)
        return changed.performed(_result(outcome, output, blob, changed, ()))

    async def _start_python(self, call: Call, arguments: _Arguments, *, is_staged: bool) -> Performed:
        """Start an interpreter. Its engine sends the code over the socket, and ends it with `shell.stop`."""
        for abandoned in tuple(self.connected):  # a turn that was cancelled or rewound left it waiting
            await self.kill_interpreter(abandoned)
        argv = self._interpreter
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                async with self._sandbox.use() as sandbox:
                    before = await self._collect_background(call, sandbox, is_staged=is_staged)
                    await self._sandbox.show_workspace(sandbox)
                    async with self._hosts(call, sandbox) as (environment, _):
                        request = self._request(arguments, argv, environment)
                        process = await self._background.start(sandbox, request, name="code", channel=theirs)
            connected = await ConnectedProcess.open(process, ours, self._background.output(process))
        except BaseException:
            ours.close()
            raise
        self.connected[process] = connected
        self._record(CommandStarted(call=call.id, argv=argv[:1], process=process, name="code"))
        return before.performed({"process": process})

    async def kill_interpreter(self, process: str) -> None:
        """End an interpreter and drop what it changed. Idempotent."""
        connected = self.connected.pop(process, None)
        if connected is None:
            return
        connected.close()
        if self._sandbox.is_open:
            with contextlib.suppress(
                CommandError
            ):  # the sandbox is gone, and with it what the interpreter changed
                async with self._sandbox.use() as sandbox:
                    if any(each.id == process for each in sandbox.processes()):
                        await sandbox.stop(process)
                        await self._drop(sandbox)
        self._background.forget(process)

    # -- what a program changed

    async def _collect_background(
        self, call: Call, sandbox: CommandSandbox, *, is_staged: bool
    ) -> "_Changed":
        """Settle what background processes changed since the last command: showing the workspace again drops it."""
        return await self._collect(call, sandbox, is_staged=is_staged) if sandbox.processes() else _Changed()

    async def _collect(
        self, call: Call, sandbox: CommandSandbox, *, is_staged: bool, unfinished: Collection[str] = ()
    ) -> "_Changed":
        collected = await sandbox.collect()
        effects = tuple(each for each in collected.effects if each.path not in unfinished)
        settled = await self._settle(call, effects, sandbox.read_changed, is_staged=is_staged)
        dropped = tuple(
            NotCollected(path=each.path, because=_UNFINISHED)
            for each in collected.effects
            if each.path in unfinished
        )
        if dropped:
            await self._sandbox.show_workspace(sandbox)
        return _Changed(
            judged=settled.judged,
            changes=settled.changes,
            bytes_written=settled.bytes_written,
            not_collected=(*dropped, *collected.not_collected),
            scratch=len(collected.scratch),
        )

    async def _drop(self, sandbox: CommandSandbox) -> "_Changed":
        """Drop what programs changed; the result names it."""
        collected = await sandbox.collect()
        await self._sandbox.show_workspace(sandbox)
        dropped = (NotCollected(path=each.path, because=_DEAD) for each in collected.effects)
        return _Changed(not_collected=(*dropped, *collected.not_collected), scratch=len(collected.scratch))

    # -- programs

    def _new_output(self) -> CommandOutput:
        return CommandOutput(shown_bytes=self._settings.output_kb << 10)

    def _request(
        self, arguments: _Arguments, argv: tuple[str, ...], environment: Mapping[str, str]
    ) -> CommandRequest:
        passed = {name: os.environ[name] for name in self._settings.environment if name in os.environ}
        timeout = arguments.timeout_s or self._settings.timeout_seconds
        return CommandRequest(
            argv=argv,
            cwd=_inside(arguments.cwd),
            environment={**environment, **passed, **arguments.env},
            stdin=arguments.stdin.encode() if arguments.stdin is not None else None,
            timeout_seconds=min(timeout, MAX_TIMEOUT_SECONDS),
            has_terminal=arguments.tty,
        )

    @asynccontextmanager
    async def _hosts(
        self, call: Call, sandbox: CommandSandbox, *, is_background: bool = False
    ) -> AsyncIterator[tuple[Mapping[str, str], Callable[[], Sequence[JudgedHost]]]]:
        """The variables for programs of this call, and the hosts they have asked for so far."""
        if self._network is None:
            yield {}, lambda: ()
            return
        environment, log = await self._network.serve(sandbox, call, is_background=is_background)
        yield environment, log.judged

    async def _record_end(self, call: Call, outcome: CommandOutcome, output: CommandOutput) -> str:
        """Record how a program ended, and store its output. Returns the blob; empty if the result has all of it."""
        content = await asyncio.to_thread(self._redact, output.kept) if output.size else b""
        ref = None
        if content:
            ref = BlobRef(digest=await self._keep(content), size=len(content))
        self._record(
            CommandEnded(
                call=call.id,
                code=outcome.code,
                signal=outcome.signal,
                is_timed_out=outcome.is_timed_out,
                stopped_because=outcome.stopped_because,
                output=ref,
                output_bytes=output.size,
                left_processes=outcome.left_processes,
                seconds=round(outcome.seconds, 3),
                cpu_seconds=round(outcome.cpu_seconds, 3),
                memory_mb=outcome.memory_mb,
            )
        )
        return ref.digest if ref is not None and output.size > self._settings.output_kb << 10 else ""


class _Changed(Value):
    """What programs changed, judged, and how much of it was written."""

    judged: tuple[JudgedEffect, ...] = ()
    changes: tuple[Change, ...] = ()
    bytes_written: int = 0
    not_collected: tuple[NotCollected, ...] = ()
    scratch: int = 0

    def plus(self, later: "_Changed") -> "_Changed":
        """Both together, in order."""
        return _Changed(
            judged=(*self.judged, *later.judged),
            changes=(*self.changes, *later.changes),
            bytes_written=self.bytes_written + later.bytes_written,
            not_collected=(*self.not_collected, *later.not_collected),
            scratch=max(self.scratch, later.scratch),
        )

    def performed(self, result: Json, before: "_Changed | None" = None) -> Performed:
        """The result of the call with its cost and its changes."""
        whole = before.plus(self) if before is not None else self
        return Performed(
            result=result, amount=Amount(bytes_written=whole.bytes_written), changes=whole.changes
        )

    def listed(self) -> dict[str, Json]:
        """The changes as a result names them: what was kept, and what was refused and why."""
        kept: list[Json] = [
            {"path": each.effect.path, "kind": each.effect.kind, "verdict": _WORDS[each.verdict]}
            for each in self.judged
            if each.verdict != "deny"
        ]
        refused: list[Json] = [
            {"path": each.effect.path, "because": f"{each.reason} (rule {each.rule})"}
            for each in self.judged
            if each.verdict == "deny"
        ]
        refused += [{"path": each.path, "because": each.because} for each in self.not_collected]
        return {"changes": _first(kept), "refused": _first(refused)}


_WORDS: dict[str, str] = {
    "allow": "written",
    "stage": "staged",
    "escalate": "staged; a person must approve it by name",
}


def _first(listed: list[Json]) -> list[Json]:
    if len(listed) <= MAX_LISTED:
        return listed
    return [*listed[:MAX_LISTED], {"path": f"and {len(listed) - MAX_LISTED} more"}]


def _result(
    outcome: CommandOutcome,
    output: CommandOutput,
    blob: str,
    changed: _Changed,
    hosts: Sequence[JudgedHost],
) -> dict[str, Json]:
    """The result of a program. What does not apply is left out, because the model reads all of it."""
    result: dict[str, Json] = {"code": outcome.code, "output": output.shown, **changed.listed()}
    if outcome.signal:
        result["signal"] = outcome.signal
    if outcome.is_timed_out:
        result["timed_out"] = True
    if outcome.stopped_because:
        result["stopped"] = f"it used too much {outcome.stopped_because}"
    if blob:
        result["bytes"], result["blob"] = output.size, blob
    if changed.scratch:
        result["scratch"] = changed.scratch
    if outcome.left_processes:
        result["left"] = outcome.left_processes
        stopped = pluralize(outcome.left_processes, "process", "processes")
        result["note"] = (
            f"{stopped} that it left behind {'was' if outcome.left_processes == 1 else 'were'} stopped; "
            "use shell.start for a server"
        )
    if hosts:
        result["hosts"] = [{"host": each.host, "verdict": each.verdict} for each in hosts]
    result["seconds"] = round(outcome.seconds, 1)
    if outcome.cpu_seconds >= 0.1:
        result["cpu_seconds"] = round(outcome.cpu_seconds, 1)
    if outcome.memory_mb:
        result["memory_mb"] = outcome.memory_mb
    return result


def _started(
    call: Call, arguments: _Arguments, argv: tuple[str, ...], *, process: str = "", name: str = ""
) -> CommandStarted:
    return CommandStarted(
        call=call.id,
        argv=argv,
        cwd=_inside(arguments.cwd),
        hosts=tuple(arguments.hosts),
        process=process,
        name=name,
    )


def _inside(cwd: str) -> str:
    """The folder relative to the workspace; guests know the workspace as /workspace."""
    for root in ("/workspace/", "/workspace"):
        if cwd.startswith(root):
            cwd = cwd[len(root) :]
            break
    return cwd.strip() or "."
