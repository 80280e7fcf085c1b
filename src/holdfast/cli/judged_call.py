"""A call as it is typed at the command line, ready to be judged."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.core import Call, JsonObject, Location, Paths, call_id
from holdfast.core.errors import InvalidInput
from holdfast.policy import Request, Resolver, RulePolicy, tool_for
from holdfast.world import WorldPaths


async def request_for(
    policy: RulePolicy, text: str, *, workspace: Path, protected: Sequence[Path]
) -> Request:
    """The call in a text, its targets resolved as they are now. Raises InvalidInput."""
    call = _call(text)
    tool = tool_for(policy, call.operation)
    paths: Paths = WorldPaths(workspace.resolve(), protected=[one.absolute() for one in protected])
    if not call.operation.startswith("world."):
        paths = _ToolPaths(paths)
    targets = await Resolver().targets(tool, call.arguments, paths) if tool is not None else ()
    return Request(call=call, tool=tool, targets=targets)


class _ToolPaths:
    """Paths as tools that open them by themselves read them: `~` is the home folder."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def locate(self, given: str) -> Location:
        return self._paths.locate(os.path.expanduser(given) if given.startswith("~") else given)


class _CallForm(msgspec.Struct):
    """Our form of a call, and IronCurtain's two."""

    operation: str = ""
    arguments: JsonObject = {}
    server: str = ""
    tool: str = ""
    args: JsonObject = {}
    server_name: str = msgspec.field(name="serverName", default="")
    tool_name: str = msgspec.field(name="toolName", default="")


def _call(text: str) -> Call:
    hint = 'expected {"operation": "world.read", "arguments": {"path": "a.txt"}}'
    try:
        form = msgspec.json.decode(text, type=_CallForm)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"--call is no call: {error}", hint=hint) from None
    operation = form.operation or f"{form.server or form.server_name}.{form.tool or form.tool_name}"
    if operation == ".":
        raise InvalidInput("--call names no operation", hint=hint)
    return Call(id=call_id(1, 1), operation=operation, arguments=form.arguments or form.args)
