"""Tool annotations: the roles of the arguments of a server's tools, as data.

The roles for well-known servers ship in `roles/`. Those that a person confirms with `holdfast mcp annotate` override
them. Both use the format of IronCurtain's tool-annotations.json, extended by `isReadOnly`, `isIdempotent` and
`isDestructive`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

import msgspec

from holdfast.core import ArgumentRoles, Condition, ConditionalRoles, Json, Role, Tool, Value
from holdfast.core.errors import InvalidConfig
from holdfast.mcp.client.tool_definitions import ToolDefinition
from holdfast.mcp.config.servers import ServerSpec

_ROLES = Path(__file__).with_name("roles")
PACKAGES = {
    "@modelcontextprotocol/server-filesystem": "filesystem",
    "@modelcontextprotocol/server-github": "github",
    "github-mcp-server": "github",
    "mcp-server-fetch": "fetch",
    "mcp-server-git": "git",
    "mcp-server-sqlite": "sqlite",
    "mcp-server-time": "time",
}
"""Packages whose roles ship. A package name identifies a server better than the name of its entry."""


class ToolRoles(Value):
    """The roles of one tool's arguments, and its known effects."""

    arguments: dict[str, ArgumentRoles]
    is_read_only: bool = False
    is_idempotent: bool = False
    is_destructive: bool = False


class Annotations:
    """Roles by server and tool."""

    def __init__(self, servers: Mapping[str, Mapping[str, ToolRoles]]) -> None:
        self._servers = {server: dict(tools) for server, tools in servers.items()}

    @classmethod
    def load(cls, path: Path) -> "Annotations":
        """Read a tool-annotations.json. Raises InvalidConfig."""
        try:
            document = msgspec.json.decode(path.read_bytes(), type=_Document)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidConfig(f"{path}: cannot be read as tool annotations: {error}") from error
        return cls(
            {
                server: {tool.tool_name: _tool_roles(tool) for tool in listed.tools}
                for server, listed in document.servers.items()
            }
        )

    def merged(self, other: "Annotations") -> "Annotations":
        """The roles of both. For a tool in both, the other's roles apply."""
        servers = {*self._servers, *other._servers}
        return Annotations(
            {name: self._servers.get(name, {}) | other._servers.get(name, {}) for name in servers}
        )

    def server(self, name: str) -> Mapping[str, ToolRoles]:
        """The roles of one server's tools."""
        return self._servers.get(name, {})

    def tools(self) -> Iterator[Tool]:
        """Every annotated tool, without its parameters, which are not known here."""
        for server, tools in self._servers.items():
            for name, roles in tools.items():
                yield Tool(name=f"{server}.{name}", roles=roles.arguments)

    def of(self, spec: ServerSpec, definition: ToolDefinition) -> ToolRoles | None:
        """The roles of a tool; None if any of its arguments has no roles."""
        roles = self.known(spec, definition.name)
        # INVARIANT: one unknown argument leaves the whole tool without roles, and such a tool is denied. So a server cannot
        # add a parameter that no rule judges.
        return roles if roles is not None and _arguments_of(definition) <= roles.arguments.keys() else None

    def known(self, spec: ServerSpec, tool: str) -> ToolRoles | None:
        """The roles assigned to a tool of a server, whatever arguments the tool has."""
        servers = (self._servers.get(server, {}) for server in (spec.name, spec.roles, kind_of(spec)))
        return next((tools[tool] for tools in servers if tool in tools), None)

    def apply(self, spec: ServerSpec, definition: ToolDefinition) -> Tool:
        """The tool as the gate sees it."""
        roles = self.of(spec, definition)
        # A server's hints count only if they make a verdict stricter.
        is_destructive = definition.is_destructive is True or bool(roles and roles.is_destructive)
        contradicts = is_destructive or definition.is_read_only is False
        return Tool(
            name=f"{spec.name}.{definition.name}",
            description=definition.description,
            parameters=definition.parameters,
            returns=definition.returns,
            roles=roles.arguments if roles else None,
            is_read_only=bool(roles and roles.is_read_only) and not contradicts,
            is_idempotent=bool(roles and roles.is_idempotent),
            is_destructive=is_destructive,
        )

    def document(self) -> bytes:
        """The JSON of these annotations, as `load` reads it."""
        servers = {
            server: {"tools": [_entry(server, name, roles) for name, roles in tools.items()]}
            for server, tools in self._servers.items()
        }
        return msgspec.json.format(msgspec.json.encode({"servers": servers}), indent=2)


@cache
def known_roles() -> Annotations:
    """The shipped roles: filesystem, git, fetch, time, sqlite, github, and the built-in tools of Claude Code."""
    known = Annotations({})
    for path in sorted(_ROLES.glob("*.json")):
        known = known.merged(Annotations.load(path))
    return known


def kind_of(spec: ServerSpec) -> str:
    """The well-known server that an entry runs, by its program or package; empty if there is none."""
    for word in (spec.command, *spec.args):
        # `npx -y @scope/name@1.2`, `uvx mcp-server-git`, `python -m mcp_server_git`, `/opt/bin/mcp-server-time`
        for package, kind in PACKAGES.items():
            last = word if word.startswith("@") else PurePosixPath(word).name
            if last == package or last.startswith(f"{package}@") or last == package.replace("-", "_"):
                return kind
    return ""


class _ToolEntry(msgspec.Struct, rename="camel"):
    tool_name: str
    server_name: str = ""
    comment: str = ""
    args: dict[str, list[Role] | dict[str, Json]] = {}
    is_read_only: bool = False
    is_idempotent: bool = False
    is_destructive: bool = False


class _Listed(msgspec.Struct):
    tools: list[_ToolEntry]


class _Document(msgspec.Struct):
    servers: dict[str, _Listed]


class _ConditionEntry(msgspec.Struct, rename={"one_of": "in", "presence": "is"}):
    arg: str
    equals: Json = None
    one_of: list[Json] = []
    presence: str | None = None


class _WhenEntry(msgspec.Struct):
    condition: _ConditionEntry
    roles: list[Role]


class _ArgumentEntry(msgspec.Struct):
    default: list[Role]
    when: list[_WhenEntry] = []


def _tool_roles(entry: _ToolEntry) -> ToolRoles:
    return ToolRoles(
        arguments={name: _argument_roles(given) for name, given in entry.args.items()},
        is_read_only=entry.is_read_only,
        is_idempotent=entry.is_idempotent,
        is_destructive=entry.is_destructive,
    )


def _argument_roles(given: list[Role] | dict[str, Json]) -> ArgumentRoles:
    if isinstance(given, list):
        return ArgumentRoles(default=tuple(given))
    entry = msgspec.convert(given, _ArgumentEntry)
    return ArgumentRoles(
        default=tuple(entry.default),
        when=tuple(
            ConditionalRoles(
                condition=msgspec.convert(
                    {
                        "argument": each.condition.arg,
                        "equals": each.condition.equals,
                        "one_of": each.condition.one_of,
                        "presence": each.condition.presence,
                    },
                    Condition,
                ),
                roles=tuple(each.roles),
            )
            for each in entry.when
        ),
    )


def _entry(server: str, name: str, roles: ToolRoles) -> dict[str, Json]:
    arguments: dict[str, Json] = {name: list(each.default) for name, each in roles.arguments.items()}
    entry: dict[str, Json] = {"toolName": name, "serverName": server, "args": arguments}
    facts = {
        "isReadOnly": roles.is_read_only,
        "isIdempotent": roles.is_idempotent,
        "isDestructive": roles.is_destructive,
    }
    return entry | {fact: True for fact, is_true in facts.items() if is_true}


def _arguments_of(definition: ToolDefinition) -> set[str]:
    properties = definition.parameters.get("properties")
    return set(properties) if isinstance(properties, dict) else set()
