"""The health of a server: what a person should know of it before an agent uses it."""

from holdfast.core import has_hidden
from holdfast.mcp.pins import Pins
from holdfast.mcp.toolset import McpToolset


def problems_of(toolset: McpToolset, pins: Pins) -> tuple[str, ...]:
    """What is wrong with a running server's tools, each with a way out; empty where all is well."""
    name, known = toolset.spec.name, pins.server(toolset.spec.name)
    found = [f"tool {each.name!r} is refused: {each.reason}" for each in toolset.refused]
    if known is not None and known.held:
        found.append(f"held: {', '.join(known.held)} (hint: holdfast mcp diff {name})")
    for tool in toolset.tools():
        if has_hidden(tool.description):
            found.append(f"{tool.name}: its description holds characters that are not seen")
        if tool.roles is None:
            found.append(
                f"{tool.name}: denied, its arguments have no roles (hint: holdfast mcp annotate {name})"
            )
    return tuple(found)
