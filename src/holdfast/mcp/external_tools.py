"""External tools: the built-in tools of another agent, which that agent runs itself after the gate allows the call.

The gate judges and records such a call like any other. Executing it means telling the agent to proceed.
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
"""Tools of Claude Code that affect only its own state, so there is nothing to judge."""


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
                f"{call.operation} runs in the agent itself and cannot be staged",
                hint="change the policy to allow, deny or escalate it",
            )
        return Performed(result={"performer": call.operation.partition(".")[0]})


def with_default_path(tool: Tool | None, arguments: JsonObject, folder: str) -> JsonObject:
    """The arguments with the agent's default made explicit: without `path`, the tool uses its working folder."""
    if tool is None or "path" not in (tool.roles or {}):
        return arguments
    given: JsonObject = {"path": folder}
    return given | arguments
