"""Arguments on their way to a server: a path that was judged is handed on as the very path it was judged to be.

Guests see the workspace as `/workspace`; a server sees the host. Handing `/workspace/x` on as it is would name another
file than the one that was judged.
"""

from holdfast.core import ArgumentRoles, Json, JsonObject, Paths, Role, Tool
from holdfast.core.errors import PathRefused

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
