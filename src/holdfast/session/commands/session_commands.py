"""The programs of a session: the command sandbox and the `shell.*` tools, connected to its gate, journal and staged files."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from holdfast.commands import (
    PACKAGE_REGISTRIES,
    CommandToolset,
    HostGit,
    HostVerdict,
    OpenSandbox,
    PackageRegistries,
    ProcessStatus,
    SandboxStatus,
    SessionSandbox,
    ShellSettings,
    StagedFile,
    find_registries,
)
from holdfast.core import Call
from holdfast.core.errors import CommandError
from holdfast.core.events import SandboxOpened
from holdfast.gate import AskPerson, Gate
from holdfast.guests import interpreter_argv
from holdfast.policy import OwnEndpoints, SessionFacts
from holdfast.session.commands.command_network import SessionNetwork
from holdfast.session.commands.git_toolset import GitToolset
from holdfast.session.commands.hidden_files import HiddenFiles
from holdfast.session.commands.interpreters import SessionInterpreters
from holdfast.store import Journal, Redactor, Store
from holdfast.world import StagedWorld


async def _ask_nobody() -> None:
    """Another transport may answer."""


class SessionCommands:
    """What a session needs to run programs. `connect` hands it the gate, which judges what they change."""

    def __init__(
        self,
        *,
        open: OpenSandbox,
        status: SandboxStatus,
        journal: Journal,
        store: Store,
        staged: StagedWorld,
        redactor: Redactor,
        settings: ShellSettings,
        has_network: bool,
        workspace: Path | None,
        state: Path | None,
        interpreters: SessionInterpreters,
        own_endpoints: OwnEndpoints = tuple,
    ) -> None:
        self._journal = journal
        self._staged = staged
        self._settings = settings
        self._gate: Gate | None = None
        self._sandbox = SessionSandbox(
            open=open,
            status=status,
            staged=self._staged_files,
            hidden=HiddenFiles(staged.base, policy=lambda: self._connected.policy),
            record=journal.append_deferred,
        )
        self.ask_person: AskPerson = _ask_nobody
        self._has_network = has_network
        self._workspace = workspace
        self._network = SessionNetwork(
            self._judge_host if has_network else None,
            ports=settings.ports,
            is_closed=lambda port: port in {each for _, each in own_endpoints()},
            endpoints=lambda: self._registries.endpoints,
        )
        self.toolset = CommandToolset(
            self._sandbox,
            settle=lambda call, effects, read, *, is_staged: self._connected.settle_effects(
                call, effects, read, is_staged=is_staged
            ),
            keep=store.put_blob,
            record=journal.append_deferred,
            redact=redactor,
            settings=settings,
            network=self._network,
            # Only in the full sandbox: in a copy the paths of a virtual environment do not hold.
            interpreter=interpreter_argv() if status.tier == "full" else (),
        )
        interpreters.connect(self.toolset)
        self.git: GitToolset | None = None
        if workspace is not None and state is not None and HostGit.is_installed():
            self.git = GitToolset(
                self._sandbox,
                workspace=workspace,
                scratch=state / "git",
                session=journal.session,
                store=store,
                judge=lambda call, effects: self._connected.judge_effects(call, effects),
                record=journal.append,
            )

    def connect(self, gate: Gate) -> None:
        """Judge with this gate from now on."""
        self._gate = gate

    @property
    def has_open_ports(self) -> bool:
        """Whether programs may connect to servers on this machine (`[shell] ports`)."""
        return bool(self._settings.ports)

    @property
    def status(self) -> SandboxStatus:
        """The tier and the walls of the sandbox."""
        return self._sandbox.status

    @property
    def facts(self) -> SessionFacts:
        """What rules may ask for: the tier, and the hosts of the package registries."""
        return SessionFacts(
            tier=self.status.tier, host_groups=lambda: {PACKAGE_REGISTRIES: self._registries.hosts}
        )

    @cached_property
    def _registries(self) -> PackageRegistries:
        """Found when a program first asks for a host: to read the configuration of all package managers takes milliseconds."""
        if not self._has_network or self._workspace is None:
            return PackageRegistries(hosts=())
        return find_registries(os.environ, home=Path.home(), workspace=self._workspace)

    async def preview(self, port: int, *, at: int = 0) -> int:
        """Let the person's browser reach a port of the sandbox. Returns the port of this machine. Raises CommandError."""
        sandbox = self._sandbox.current
        if sandbox is None or not any(each.is_running for each in sandbox.processes()):
            raise CommandError(
                "no program runs in the background", hint="the agent starts one with shell.start"
            )
        return await self._network.preview(sandbox, port, at=at)

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The background processes, running or ended."""
        return self._sandbox.processes()

    async def rewind(self) -> None:
        """Stop every program before the files under it are restored. Scratch belongs to no restore point."""
        has_scratch = any(isinstance(entry.event, SandboxOpened) for entry in self._journal.recorded)
        await self._sandbox.rewound(drops_scratch=has_scratch and self._settings.scratch == "drop")

    async def close(self) -> None:
        """Stop every program."""
        await self._network.close()
        await self._sandbox.close()

    async def _judge_host(self, call: Call, host: str, port: int, address: str = "") -> HostVerdict:
        verdict = await self._connected.judge_host(call, host, port, self.ask_person, address=address)
        # A registry of a company is often in a private network. No file of the workspace can name one.
        is_named = (host, port) in self._registries.configured or host in self._settings.private_hosts
        return msgspec.structs.replace(verdict, allows_private=is_named)

    @property
    def _connected(self) -> Gate:
        assert self._gate is not None, "a session connects its gate before it takes a turn"
        return self._gate

    def _staged_files(self) -> Sequence[StagedFile]:
        return [
            StagedFile(path=path, content=content, mode=mode)
            for path, (content, mode) in self._staged.staged_names().items()
        ]
