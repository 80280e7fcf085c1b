"""MCP servers: each started as a session would start it, in an empty folder, and looked at."""

import tempfile
from collections.abc import Collection
from pathlib import Path

from holdfast.cli.checkup.finding import Finding
from holdfast.config import load_config
from holdfast.core import counted
from holdfast.core.errors import HoldfastError
from holdfast.mcp import McpToolset, ServerSpec, Shelf, problems_of
from holdfast.models import key_variables
from holdfast.store import Home


async def check_servers(home: Home) -> list[Finding]:
    """Whether each starts, and what is wrong with its tools."""
    shelf = Shelf(home.root)
    try:
        specs = shelf.servers()
    except HoldfastError as error:
        return [Finding(part="mcp", state="bad", told=str(error), fix=error.hint or "mend mcp-servers.json")]
    if not specs:
        told = "no servers configured (holdfast mcp add NAME -- COMMAND)"
        return [Finding(part="mcp", state="ok", told=told)]
    keys = key_variables(load_config(home).asking)
    return [await _tried(shelf, spec, keys) for spec in specs]


async def _tried(shelf: Shelf, spec: ServerSpec, keys: Collection[str]) -> Finding:
    part, fix = f"mcp {spec.name}", f"holdfast mcp doctor {spec.name}"
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=shelf.pins, annotations=shelf.annotations(), keys=keys
            ) as toolset:
                await toolset.start()
                problems, tools = problems_of(toolset, shelf.pins), len(toolset.tools())
    except HoldfastError as error:
        return Finding(part=part, state="bad", told=f"does not start: {error}", fix=error.hint or fix)
    if problems:
        return Finding(part=part, state="note", told="; ".join(problems), fix=fix)
    return Finding(part=part, state="ok", told=f"starts, {counted(tools, 'tool')}")
