"""MCP servers: each started as a session would start it, in an empty folder, and looked at."""

import tempfile
from pathlib import Path

from holdfast.cli.checkup.finding import Finding
from holdfast.core import counted
from holdfast.core.errors import HoldfastError
from holdfast.mcp import McpToolset, ServerSpec, Shelf, problems_of
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
    return [await _tried(shelf, spec) for spec in specs]


async def _tried(shelf: Shelf, spec: ServerSpec) -> Finding:
    part, fix = f"mcp {spec.name}", f"holdfast mcp doctor {spec.name}"
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=shelf.pins, annotations=shelf.annotations()
            ) as toolset:
                await toolset.start()
                problems, tools = problems_of(toolset, shelf.pins), len(toolset.tools())
    except HoldfastError as error:
        return Finding(part=part, state="bad", told=f"does not start: {error}", fix=error.hint or fix)
    if problems:
        return Finding(part=part, state="note", told="; ".join(problems), fix=fix)
    return Finding(part=part, state="ok", told=f"starts, {counted(tools, 'tool')}")
