"""Where sandboxes come from: the contract of what opens them, the fake, and the absence of any."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from holdfast.commands.contract import CommandSandbox, SandboxStatus
from holdfast.commands.open import open_sandbox
from holdfast.commands.probe import probe_sandbox
from holdfast.commands.scripted import Program, ScriptedSandbox, folder_files
from holdfast.commands.settings import SandboxSettings
from holdfast.commands.shell_settings import ShellSettings
from holdfast.core.errors import CommandError


class CommandSandboxes(Protocol):
    """Opens the command sandboxes of the sessions of a process."""

    async def probe(self) -> SandboxStatus:
        """What this machine can run. Quick after the first time."""
        ...

    async def open(self, workspace: Path, *, state: Path, settings: ShellSettings) -> CommandSandbox:
        """Open a sandbox over a workspace; its layers are in `state`. Raises CommandError."""
        ...


class NoSandboxes:
    """Where no sandbox works: there are no `shell.*` tools."""

    async def probe(self) -> SandboxStatus:
        return SandboxStatus(tier="none", missing=("commands are switched off",))

    async def open(self, workspace: Path, *, state: Path, settings: ShellSettings) -> CommandSandbox:
        raise CommandError(
            "no command sandbox is available on this machine", hint="check it with: holdfast doctor"
        )


class SystemSandboxes:
    """Sandboxes of the operating system, of the strongest tier that works here. The finding is kept in a cache until the next boot."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._status: SandboxStatus | None = None

    async def probe(self) -> SandboxStatus:
        if self._status is None:
            self._status = await probe_sandbox(self._cache)
        return self._status

    async def open(self, workspace: Path, *, state: Path, settings: ShellSettings) -> CommandSandbox:
        limits = SandboxSettings(
            memory_mb=settings.memory_mb,
            disk_mb=settings.disk_mb,
            processes=settings.processes,
            toolchains=settings.toolchains,
        )
        return await open_sandbox(workspace, state, status=await self.probe(), settings=limits)


class ScriptedSandboxes:
    """The public fake: scripted sandboxes over real folders."""

    def __init__(
        self, programs: Mapping[str, Program] | None = None, *, status: SandboxStatus | None = None
    ) -> None:
        self._programs = programs
        self._status = status or SandboxStatus(tier="full", walls=("scripted",), kernel="none")
        self.opened: list[ScriptedSandbox] = []

    async def probe(self) -> SandboxStatus:
        return self._status

    async def open(self, workspace: Path, *, state: Path, settings: ShellSettings) -> ScriptedSandbox:
        sandbox = ScriptedSandbox(
            lambda: folder_files(workspace), programs=self._programs, status=self._status
        )
        self.opened.append(sandbox)
        return sandbox
