"""Conversion at the border to a server: the arguments of a call on the way in, its result on the way out.

A guest sees the workspace as `/workspace`, a server sees the host. A path argument is replaced by the real path that
the policy judged; the guest's spelling would name a different file.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core import ArgumentRoles, Json, JsonObject, Paths, Role, Tool
from holdfast.core.errors import PathRefused, ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult

ResultFormatter = Callable[["CallToolResult"], Json]
"""Turns a server's result into the JSON for the caller."""

_PATH_ROLES: frozenset[Role] = frozenset(
    ["read-path", "write-path", "delete-path", "write-history", "delete-history"]
)
_GUEST_ROOTS = ("/workspace", "/app")


def resolve_arguments(tool: Tool, arguments: JsonObject, paths: Paths | None) -> JsonObject:
    """The arguments with every path resolved. Raises PathRefused for a path that the server must not get."""
    named = {name for name, roles in (tool.roles or {}).items() if _has_path(roles)}
    return {name: _resolve(value, paths) if name in named else value for name, value in arguments.items()}


def format_for_code(result: "CallToolResult") -> Json:
    """For code: the structured content, or the text if there is only text, or else the list of content blocks."""
    if result.structured_content is not None:
        structured: Json = result.structured_content
        return structured
    texts = [block.text for block in result.content if block.type == "text"]
    if texts and len(texts) == len(result.content):
        return "\n".join(texts)
    content: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)["content"] or None
    return content


def format_for_client(result: "CallToolResult") -> Json:
    """For another MCP client: the unchanged result."""
    whole: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return whole


def tool_error(result: "CallToolResult") -> ToolFailed:
    """The exception for a result with `isError`."""
    texts = [block.text for block in result.content if block.type == "text"]
    return ToolFailed("\n".join(texts) or "the tool failed and gave no reason")


def _has_path(roles: ArgumentRoles) -> bool:
    return any(_PATH_ROLES.intersection(each) for each in (roles.default, *(one.roles for one in roles.when)))


def _resolve(value: Json, paths: Paths | None) -> Json:
    match value:
        case str():
            return _locate(value, paths)
        case list():
            return [_resolve(each, paths) for each in value]
        case dict():
            return {_locate(key, paths): _resolve(each, paths) for key, each in value.items()}
        case _:
            return value


def _locate(given: str, paths: Paths | None) -> str:
    if paths is None:
        if any(given == root or given.startswith(f"{root}/") for root in _GUEST_ROOTS):
            raise PathRefused(f"{given!r} is a path inside the guest; the server cannot use it")
        return given
    location = paths.locate(given)
    if location.problem is not None or location.protected is not None:
        raise PathRefused(f"{given!r} is not passed to the server: {location.problem or location.protected}")
    return location.real
