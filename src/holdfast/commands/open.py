"""Opening a sandbox of the tier that works on this machine."""

from pathlib import Path
from typing import assert_never

from holdfast.commands.contract import CommandSandbox, SandboxStatus
from holdfast.commands.copy.open import open_copy_sandbox
from holdfast.commands.full.open import open_full_sandbox
from holdfast.commands.settings import SandboxSettings
from holdfast.core.errors import CommandError


async def open_sandbox(
    workspace: Path, state: Path, *, status: SandboxStatus, settings: SandboxSettings | None = None
) -> CommandSandbox:
    """Open a sandbox over a workspace. `state` keeps its layers; `status` comes from `probe_sandbox`. Raises CommandError."""
    real, kept = workspace.resolve(), state.resolve()
    if kept.is_relative_to(real):
        raise CommandError(
            f"the workspace {real} contains the folder where Holdfast keeps the sandbox's layers",
            hint="open a folder below it as the workspace, or set HOLDFAST_HOME to a folder outside it",
        )
    match status.tier:
        case "full":
            return await open_full_sandbox(real, kept, settings=settings or SandboxSettings(), status=status)
        case "copy":
            return await open_copy_sandbox(real, kept, settings=settings or SandboxSettings(), status=status)
        case "none":
            raise CommandError("no command sandbox is available on this machine", hint="holdfast doctor")
        case _:
            assert_never(status.tier)
