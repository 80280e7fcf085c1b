"""Runs one tool call of the teams server for a caller."""

import msgspec

from holdfast.core import Json, JsonObject, Value
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.teams.broker import Broker
from holdfast.teams.contract import TeamReply
from holdfast.teams.errors import AskRefused, TeamError
from holdfast.teams.server.auth import Caller
from holdfast.teams.server.tools import TOOLS, ServerTool, ToolRequest, is_failed


class ToolAnswer(Value):
    """The answer of a tool, or an error with its code and hint."""

    content: Json
    is_error: bool = False


def tools_for(caller: Caller) -> list[ServerTool]:
    """The tools that a caller may use."""
    return [tool for tool in TOOLS if caller.is_operator or not tool.is_operator_only]


async def call_tool(broker: Broker, caller: Caller, name: str, arguments: JsonObject) -> ToolAnswer:
    """Run a tool. A `fromTeam` argument must match the caller, except for operators."""
    try:
        tool = next((tool for tool in tools_for(caller) if tool.name == name), None)
        if tool is None:
            is_for_operators = any(each.name == name for each in TOOLS)
            hint = "serve it with `holdfast teams serve --operator`" if is_for_operators else None
            raise InvalidInput(f"there is no tool {name!r} for {caller.team}", hint=hint)
        # Null stands for an argument that is left out, as in `fromTeam: null` for an external caller.
        arguments = {key: value for key, value in arguments.items() if value is not None}
        tool.check(arguments)
        declared = arguments.get("fromTeam") or caller.team
        if declared != caller.team and not caller.is_operator:
            raise AskRefused(
                f"this connection speaks for {caller.team}, not for {declared}",
                hint=f"leave fromTeam out, or connect as that team: `holdfast teams serve --from {declared}`, or its token over HTTP",
            )
        content = await tool.run(ToolRequest(broker, caller, str(declared), arguments))
        return ToolAnswer(content=content, is_error=is_failed(content))
    except HoldfastError as error:
        return error_answer(error)


def error_answer(error: HoldfastError) -> ToolAnswer:
    """The answer that reports an error."""
    return ToolAnswer(
        content={"error": str(error), "code": error.code, "hint": error.hint or ""}, is_error=True
    )


def reply_of(answer: ToolAnswer) -> TeamReply:
    """The reply in the answer of `teams_ask`. Raises the error that the answer reports."""
    content = answer.content if isinstance(answer.content, dict) else {}
    if "error" in content:
        kind = _error_types(HoldfastError).get(str(content.get("code")), TeamError)
        raise kind(str(content["error"]), hint=str(content.get("hint") or "") or None)
    return msgspec.convert(content, TeamReply)


def _error_types(base: type[HoldfastError]) -> dict[str, type[HoldfastError]]:
    """The error types below this one that are created from a message and a hint, by code."""
    found: dict[str, type[HoldfastError]] = {}
    for kind in base.__subclasses__():
        if kind.__init__ is HoldfastError.__init__:
            found = {kind.code: kind} | found
        found = _error_types(kind) | found
    return found
