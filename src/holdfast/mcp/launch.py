"""Launching a server's program, without the protocol library: the two load at the same time, which halves the wait."""

from collections.abc import Mapping
from pathlib import Path

from holdfast.core.errors import ToolFailed
from holdfast.mcp.environment import arguments_for, environment_for
from holdfast.mcp.sandbox import confined
from holdfast.mcp.specs import ServerSpec
from holdfast.mcp.ward import Ward
from holdfast.store import Home


async def launch(spec: ServerSpec, *, workspace: Path, environ: Mapping[str, str]) -> Ward | None:
    """The server's program, started; None for one that is reached by an address. Raises ToolFailed and InvalidConfig."""
    if spec.url:
        return None
    command = _command(spec, workspace, environ)
    environment = environment_for(spec, environ)
    try:
        return await Ward.start(command, folder=workspace, environment=environment)
    except (OSError, ValueError) as error:
        raise ToolFailed(f"{spec.command}: cannot be started: {error}") from error


def _command(spec: ServerSpec, workspace: Path, environ: Mapping[str, str]) -> list[str]:
    command = [spec.command, *arguments_for(spec, environ)]
    if spec.sandbox is None:
        return command
    # Our own home holds what every session ever said; a confined server sees of it the workspace at most.
    hidden = (Home.default().root,)
    return confined(spec.sandbox, command, workspace=workspace, hidden=hidden, environ=environ)
