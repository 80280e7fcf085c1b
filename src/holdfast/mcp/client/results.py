"""Arguments on their way to a server: a path that was judged is handed on as the very path it was judged to be.

Guests see the workspace as `/workspace`; a server sees the host. Handing `/workspace/x` on as it is would name another
file than the one that was judged.

Results: what a server answered, as the JSON a guest is given. Nothing that came is lost, text or not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core import Json
from holdfast.core.errors import ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult
from holdfast.core import ArgumentRoles, JsonObject, Paths, Role, Tool
from holdfast.core.errors import PathRefused

Present = Callable[["CallToolResult"], Json]
"""How a result is shown to who asked for it."""


def present_plainly(result: "CallToolResult") -> Json:
    """For code: the structured content where there is some, the text where that is all, else the list of blocks."""
    if result.structured_content is not None:
        structured: Json = result.structured_content
        return structured
    texts = [block.text for block in result.content if block.type == "text"]
    if texts and len(texts) == len(result.content):
        return "\n".join(texts)
    content: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)["content"] or None
    return content


def present_wholly(result: "CallToolResult") -> Json:
    """For another MCP client: the result as it came."""
    whole: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return whole


def failure_of(result: "CallToolResult") -> ToolFailed:
    """The error that an `isError` result is."""
    texts = [block.text for block in result.content if block.type == "text"]
    return ToolFailed("\n".join(texts) or "the tool failed and gave no reason")


_PATH_ROLES: frozenset[Role] = frozenset(
    ["read-path", "write-path", "delete-path", "write-history", "delete-history"]
)
_GUEST_ROOTS = ("/workspace", "/app")


def for_server(tool: Tool, arguments: JsonObject, paths: Paths | None) -> JsonObject:
    """The arguments with every path where it really leads. Raises PathRefused where it leads nowhere allowed."""
    named = {name for name, roles in (tool.roles or {}).items() if _has_path(roles)}
    return {name: _real(value, paths) if name in named else value for name, value in arguments.items()}


def _has_path(roles: ArgumentRoles) -> bool:
    return any(_PATH_ROLES.intersection(each) for each in (roles.default, *(one.roles for one in roles.when)))


def _real(value: Json, paths: Paths | None) -> Json:
    match value:
        case str():
            return _locate(value, paths)
        case list():
            return [_real(each, paths) for each in value]
        case dict():
            return {_locate(key, paths): _real(each, paths) for key, each in value.items()}
        case _:
            return value


def _locate(given: str, paths: Paths | None) -> str:
    if paths is None:
        if any(given == root or given.startswith(f"{root}/") for root in _GUEST_ROOTS):
            raise PathRefused(f"{given!r} is a guest's path and means nothing to a server")
        return given
    location = paths.locate(given)
    if location.problem is not None or location.protected is not None:
        raise PathRefused(f"{given!r} cannot be handed on: {location.problem or location.protected}")
    return location.real
