"""The tools of a home without starting anything: of its MCP servers as they were last accepted, and what ships of well-known ones."""

from holdfast.core import Tool
from holdfast.mcp import Shelf, kind_of
from holdfast.store import Home


def known_tools(home: Home) -> dict[str, Tool]:
    """By operation. Raises InvalidConfig where a file of the home cannot be read."""
    shelf = Shelf(home.root)
    annotations = shelf.annotations()
    found = {tool.name: tool for tool in annotations.tools()}
    for spec in shelf.servers():
        for kind in (kind_of(spec), spec.roles, spec.name):
            for verb, roles in annotations.server(kind).items():
                name = f"{spec.name}.{verb}"
                found[name] = Tool(name=name, roles=roles.arguments)
        pinned = shelf.pins.server(spec.name)
        for definition in pinned.tools.values() if pinned is not None else ():
            tool = annotations.apply(spec, definition)
            found[tool.name] = tool
    return found
