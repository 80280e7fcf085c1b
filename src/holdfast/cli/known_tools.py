"""The tools of a home without starting anything: of its MCP servers as they were last accepted, and what ships of well-known ones."""

import msgspec

from holdfast.core import Tool
from holdfast.mcp import Shelf, kind_of
from holdfast.policy import RulePolicy, annotate
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


def with_tools(policy: RulePolicy, home: Home, *, is_annotated: bool) -> RulePolicy:
    """The policy with the tools of this home. Annotations that were given, or lie beside a compiled policy, go first; those
    within a policy, last, as at the gate."""
    document = policy.document
    known = {name: annotate(tool, policy) for name, tool in known_tools(home).items()}
    is_first = is_annotated or document.source.endswith(".json")
    tools = known | document.tools if is_first else document.tools | known
    return RulePolicy(msgspec.structs.replace(document, tools=tools))
