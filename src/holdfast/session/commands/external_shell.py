"""The programs of an external agent: the `shell.*` tools over the workspace with what its programs staged, without a loop of ours."""

from functools import partial
from pathlib import Path

from holdfast.commands import PYTHON_TOOL, CommandSandbox, SandboxStatus
from holdfast.core import Toolset
from holdfast.gate import NET_CONNECT, own_endpoints
from holdfast.policy import Policy
from holdfast.session.commands.interpreters import SessionInterpreters
from holdfast.session.commands.session_commands import SessionCommands
from holdfast.session.resources import SharedResources
from holdfast.session.staged_changes import restage
from holdfast.store import Journal, private_folder
from holdfast.world import EffectWriter, FolderWorld, Quota, StagedWorld, UndoJournal, WorldToolset


class ExternalShell:
    """What the gate of an external agent needs so that the agent can run programs."""

    def __init__(self, commands: SessionCommands, staged: StagedWorld, world: WorldToolset) -> None:
        self.commands = commands
        self.writer = EffectWriter(staged)
        self.toolsets: tuple[Toolset, ...] = (
            world,
            commands.toolset,
            *((commands.git,) if commands.git is not None else ()),
        )
        self.hidden_tools = frozenset({PYTHON_TOOL.name, *(tool.name for tool in world.tools())})
        """Registered, because what a program changes is judged as calls of them. The agent has file tools of its own."""

    @classmethod
    async def open(
        cls,
        shared: SharedResources,
        journal: Journal,
        *,
        workspace: Path,
        policy: Policy,
        status: SandboxStatus,
    ) -> "ExternalShell":
        """The programs of a session, over what is staged in it."""
        settings, own = shared.settings, shared.home.prepare_session(journal.session)
        quota = Quota(bytes=settings.workspace_bytes, files=settings.workspace_files)
        world, undo = FolderWorld(workspace, quota=quota), UndoJournal(own)
        undo.recover(world)
        staged = StagedWorld(world, undo=undo)
        await restage(staged, journal, shared.store)

        async def open_sandbox() -> CommandSandbox:
            state = private_folder(own / "sandbox")
            return await shared.sandboxes.open(workspace, state=state, settings=settings.shell)

        commands = SessionCommands(
            open=open_sandbox,
            status=status,
            journal=journal,
            store=shared.store,
            staged=staged,
            redactor=shared.redactor,
            settings=settings.shell,
            has_network=policy.could_allow(NET_CONNECT),
            workspace=workspace,
            state=own,
            interpreters=SessionInterpreters(),
            own_endpoints=partial(own_endpoints, shared.home),
        )
        return cls(commands, staged, WorldToolset(staged.base, staged, keep=shared.store.put_blob))


async def shell_status(shared: SharedResources) -> SandboxStatus:
    """The sandbox in which programs of an external agent would run; the tier is `none` where the settings want no weaker one."""
    wanted = shared.settings.shell.enabled
    if wanted is False:
        return SandboxStatus(tier="none", missing=("commands are switched off in config.toml",))
    found = await shared.sandboxes.probe()
    if found.tier == "full" or wanted is True:
        return found
    return SandboxStatus(tier="none", missing=found.missing, hint=found.hint)
