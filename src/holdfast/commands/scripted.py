"""The public fake of a command sandbox: a few programs in this process over files in memory. It keeps the whole contract.

It knows `cat`, `chmod`, `cp`, `echo`, `false`, `mkdir`, `mv`, `rm`, `sleep`, `tee` and `true` as far as tests need them, and programs that
a test adds. `bash -c` runs commands joined by `&&`. Nothing touches the disk except `folder_files`, which reads it.
"""

import asyncio
import shlex
import socket
import stat
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.commands.contract import (
    CollectedChanges,
    CommandOutcome,
    CommandRequest,
    NotCollected,
    OnOutput,
    ProcessStatus,
    SandboxStatus,
    StagedFile,
)
from holdfast.core import FileEffect, digest_bytes
from holdfast.core.errors import CommandError

SCRATCH = frozenset({".git", "__pycache__", "node_modules", ".venv"})
"""What the fake takes for ignored by git."""


class ScriptedFile(NamedTuple):
    """The content and the mode of a file."""

    content: bytes
    mode: int = 0o644


Files = dict[str, ScriptedFile]
ReadBase = Callable[[], Mapping[str, ScriptedFile]]
"""The files of the workspace as they are now."""


def folder_files(root: Path) -> Files:
    """The regular files of a folder."""
    return {
        path.relative_to(root).as_posix(): ScriptedFile(path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


class ScriptedProcess:
    """What a program of a test can do."""

    def __init__(self, request: CommandRequest, files: Files, on_output: OnOutput) -> None:
        self.argv = request.argv
        self.environment = request.environment
        self.files = files
        self.input: asyncio.Queue[bytes] = asyncio.Queue()
        self.stdin = request.stdin or b""
        self.ports: tuple[int, ...] = ()
        self.printed = 0
        self._on_output = on_output

    def print(self, text: str | bytes) -> None:
        """Write to the output."""
        data = text.encode() if isinstance(text, str) else text
        self.printed += len(data)
        self._on_output(data)

    def write(self, path: str, content: bytes | str, *, mode: int | None = None) -> None:
        """Create or replace a file."""
        data = content.encode() if isinstance(content, str) else content
        kept = self.files[path].mode if path in self.files else 0o644
        self.files[path] = ScriptedFile(data, kept if mode is None else mode)


Program = Callable[[ScriptedProcess], Awaitable[int]]
"""Runs a program and returns its exit code."""


class ScriptedSandbox:
    """Runs programs of a table over the files of a workspace."""

    def __init__(
        self,
        base: ReadBase,
        *,
        programs: Mapping[str, Program] | None = None,
        status: SandboxStatus | None = None,
    ) -> None:
        self._base = base
        self._programs = {**_PROGRAMS, **(programs or {})}
        self._status = status or SandboxStatus(tier="full", walls=("scripted",), kernel="none")
        self._files: Files = {}
        self._shown: Files = {}
        self._scratch: Files = {}
        self._hidden: frozenset[str] = frozenset()
        self._processes: dict[str, _Background] = {}
        self.requests: list[CommandRequest] = []
        """Every program that was started, in order."""
        self.is_closed = False

    @property
    def status(self) -> SandboxStatus:
        return self._status

    async def show(self, staged: Sequence[StagedFile], *, hidden: Collection[str] = ()) -> None:
        self._check_open()
        self._keep_scratch()
        self._hidden = frozenset(hidden)
        shown = {path: each for path, each in self._base().items() if path not in self._hidden}
        for each in staged:
            if each.content is None:
                shown.pop(each.path, None)
            elif each.path not in self._hidden:
                mode = each.mode if each.mode is not None else 0o644
                shown[each.path] = ScriptedFile(each.content, mode)
        self._shown = shown
        # The same dictionary, because background processes hold it.
        self._files.clear()
        self._files.update({**shown, **self._scratch})

    async def run(self, request: CommandRequest, *, on_output: OnOutput) -> CommandOutcome:
        self._check_open()
        self.requests.append(request)
        process = ScriptedProcess(request, self._files, on_output)
        return await self._outcome(process, request.timeout_seconds)

    async def start(
        self,
        request: CommandRequest,
        *,
        name: str,
        on_output: OnOutput,
        channel: socket.socket | None = None,
    ) -> str:
        self._check_open()
        self.requests.append(request)
        process = ScriptedProcess(request, self._files, on_output)
        id = f"p{len(self._processes) + 1}"
        task = asyncio.create_task(self._outcome(process, None))
        self._processes[id] = _Background(id, name, process, task, int(time.time() * 1000))
        await asyncio.sleep(0)
        return id

    async def write(self, process: str, data: bytes) -> None:
        self._background(process).process.input.put_nowait(data)

    async def signal(self, process: str, name: str) -> None:
        task = self._background(process).task
        if name in ("SIGTERM", "SIGINT", "SIGKILL", "SIGHUP", "SIGQUIT"):
            task.cancel(name)
            await asyncio.wait({task})

    async def stop(self, process: str) -> CommandOutcome:
        background = self._background(process)
        background.task.cancel("SIGTERM")
        await asyncio.wait({background.task})
        outcome = background.outcome
        assert outcome is not None
        return outcome

    def processes(self) -> tuple[ProcessStatus, ...]:
        return tuple(
            ProcessStatus(
                id=each.id,
                name=each.name,
                argv=each.process.argv,
                is_running=not each.task.done(),
                started_ms=each.started_ms,
                ports=each.process.ports if not each.task.done() else (),
                outcome=each.outcome,
            )
            for each in self._processes.values()
        )

    async def collect(self) -> CollectedChanges:
        self._check_open()
        effects: list[FileEffect] = []
        scratch: list[str] = []
        refused: list[NotCollected] = []
        for path in sorted({*self._files, *self._shown}):
            before, after = self._shown.get(path), self._files.get(path)
            if before == after:
                continue
            if _is_scratch(path):
                scratch.append(path)
            elif path in self._hidden:
                refused.append(NotCollected(path=path, because="the file is hidden from programs"))
            elif after is None:
                effects.append(FileEffect(path=path, kind="deleted"))
            else:
                effects.append(
                    FileEffect(
                        path=path,
                        kind="modified" if before is not None else "created",
                        digest=digest_bytes(after.content),
                        size=len(after.content),
                        mode=after.mode,
                    )
                )
        for effect in effects:
            if effect.kind == "deleted":
                del self._shown[effect.path]
            else:
                self._shown[effect.path] = self._files[effect.path]
        return CollectedChanges(effects=tuple(effects), scratch=tuple(scratch), not_collected=tuple(refused))

    def read_changed(self, path: str) -> bytes:
        if path not in self._files:
            raise CommandError(f"{path!r} is no longer there")
        return self._files[path].content

    async def listen(self, port: int = 0) -> tuple[socket.socket, int]:
        self._check_open()
        listening = socket.create_server(("127.0.0.1", port))
        return listening, listening.getsockname()[1]

    async def connect(self, port: int) -> socket.socket:
        raise CommandError(f"nothing listens on port {port}")

    async def drop_scratch(self) -> None:
        for path in [path for path in self._files if _is_scratch(path)]:
            del self._files[path]
        self._scratch.clear()

    async def close(self) -> None:
        self.is_closed = True
        for each in self._processes.values():
            each.task.cancel("SIGKILL")
        await asyncio.gather(*(each.task for each in self._processes.values()), return_exceptions=True)

    async def _outcome(self, process: ScriptedProcess, seconds: float | None) -> CommandOutcome:
        started = time.monotonic()
        code: int | None = None
        signal, is_timed_out = "", False
        try:
            async with asyncio.timeout(seconds):
                code = await self._execute(process)
        except TimeoutError:
            signal, is_timed_out = "SIGKILL", True
        return CommandOutcome(
            code=code,
            signal=signal,
            is_timed_out=is_timed_out,
            output_bytes=process.printed,
            seconds=time.monotonic() - started,
        )

    async def _execute(self, process: ScriptedProcess) -> int:
        program = self._programs.get(process.argv[0])
        if program is not None:
            return await program(process)
        if process.argv[:2] == ("bash", "-c"):
            for line in process.argv[2].replace("\n", "&&").split("&&"):
                if not line.strip():
                    continue
                process.argv = tuple(shlex.split(line))
                if code := await self._execute(process):
                    return code
            return 0
        process.print(f"{process.argv[0]}: command not found\n")
        return 127

    def _background(self, process: str) -> "_Background":
        self._check_open()
        found = self._processes.get(process)
        if found is None:
            raise CommandError(f"there is no process {process!r}")
        return found

    def _keep_scratch(self) -> None:
        kept = {path: each for path, each in self._files.items() if _is_scratch(path)}
        self._scratch = {path: each for path, each in kept.items() if self._shown.get(path) != each}

    def _check_open(self) -> None:
        if self.is_closed:
            raise CommandError("the sandbox is closed")


class _Background(NamedTuple):
    id: str
    name: str
    process: ScriptedProcess
    task: asyncio.Task[CommandOutcome]
    started_ms: int

    @property
    def outcome(self) -> CommandOutcome | None:
        if not self.task.done():
            return None
        if self.task.cancelled():
            return CommandOutcome(signal="SIGTERM", output_bytes=self.process.printed)
        return self.task.result()


def _is_scratch(path: str) -> bool:
    return not SCRATCH.isdisjoint(path.split("/"))


async def _cat(process: ScriptedProcess) -> int:
    for path in process.argv[1:]:
        if path not in process.files:
            process.print(f"cat: {path}: No such file or directory\n")
            return 1
        process.print(process.files[path].content)
    if len(process.argv) == 1:
        process.print(process.stdin)
    return 0


async def _chmod(process: ScriptedProcess) -> int:
    mode, path = process.argv[1:3]
    old = process.files[path]
    process.files[path] = ScriptedFile(old.content, old.mode | 0o111 if mode == "+x" else int(mode, 8))
    return 0


async def _cp(process: ScriptedProcess) -> int:
    source, destination = process.argv[1:3]
    process.files[destination] = process.files[source]
    return 0


async def _mv(process: ScriptedProcess) -> int:
    source, destination = process.argv[1:3]
    process.files[destination] = process.files.pop(source)
    return 0


async def _echo(process: ScriptedProcess) -> int:
    process.print(" ".join(process.argv[1:]) + "\n")
    return 0


async def _rm(process: ScriptedProcess) -> int:
    flags = [each for each in process.argv[1:] if each.startswith("-")]
    for path in (each for each in process.argv[1:] if not each.startswith("-")):
        below = [each for each in process.files if each == path or each.startswith(f"{path}/")]
        if not below and not any("f" in flag for flag in flags):
            process.print(f"rm: cannot remove '{path}': No such file or directory\n")
            return 1
        for each in below:
            del process.files[each]
    return 0


async def _sleep(process: ScriptedProcess) -> int:
    await asyncio.sleep(float(process.argv[1]))
    return 0


async def _tee(process: ScriptedProcess) -> int:
    process.print(process.stdin)
    for path in process.argv[1:]:
        process.write(path, process.stdin)
    return 0


async def _true(process: ScriptedProcess) -> int:
    return 0


async def _false(process: ScriptedProcess) -> int:
    return 1


_PROGRAMS: dict[str, Program] = {
    "cat": _cat,
    "chmod": _chmod,
    "cp": _cp,
    "echo": _echo,
    "false": _false,
    "mkdir": _true,  # folders exist as soon as they hold a file
    "mv": _mv,
    "rm": _rm,
    "sleep": _sleep,
    "tee": _tee,
    "true": _true,
}
