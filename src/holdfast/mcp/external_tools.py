"""Foreign tools: what another agent carries out by itself, once the gate has said yes.

The gate judges and records such a call like any other; performing it is telling the agent to go ahead.
"""

from holdfast.core import Call, JsonObject, Performed, Tool
from holdfast.core.errors import ToolFailed
from holdfast.mcp.trust.argument_roles import Annotations, known_roles

CLAUDE = "claude"
UNJUDGED_TOOLS = frozenset(
    [
        "AskUserQuestion",
        "BashOutput",
        "EnterPlanMode",
        "ExitPlanMode",
        "KillShell",
        "TaskOutput",
        "TaskStop",
        "TodoWrite",
    ]
)
"""Tools of Claude Code that change nothing but its own notes; there is nothing to judge."""


class ExternalTools:
    """The built-in tools of another agent as a toolset."""

    def __init__(self, group: str = CLAUDE, annotations: Annotations | None = None) -> None:
        known = (annotations or known_roles()).server(group)
        self._tools = tuple(
            Tool(
                name=f"{group}.{name}",
                parameters={"type": "object", "properties": {argument: {} for argument in roles.arguments}},
                roles=roles.arguments,
                is_read_only=roles.is_read_only,
            )
            for name, roles in known.items()
        )

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                f"{call.operation} is carried out by the agent itself and cannot be staged",
                hint="let the policy allow, deny or escalate it",
            )
        return Performed(result={"performer": call.operation.partition(".")[0]})


def with_default_path(tool: Tool | None, arguments: JsonObject, folder: str) -> JsonObject:
    """The arguments with what the agent takes for granted written out: no path means the folder it works in."""
    if tool is None or "path" not in (tool.roles or {}):
        return arguments
    given: JsonObject = {"path": folder}
    return given | arguments
