"""Reads IronCurtain's compiled-policy.json, tool-annotations.json and dynamic-lists.json, so that its policies work unchanged.

The checks built into its engine become rules of the document: calls inside the workspace are allowed, and so is listing
the open folders. What IronCurtain keeps in other files may also be in the policy file: `domainAllowlists`,
`trustedServers`, `lists`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec

from holdfast.core import ArgumentRoles, Condition, ConditionalRoles, Json, JsonObject, Role, Tool
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.document import HostTest, NameTest, PathTest, PolicyDocument, Rule
from holdfast.policy.lexical_paths import resolve_folder
from holdfast.policy.plain_yaml import line_and_column
from holdfast.policy.targets import PATH_ROLES
from holdfast.policy.urls import canonical_pattern
from holdfast.policy.yaml_nodes import YamlNode, read_nodes

_NOT_EMPTY = msgspec.Meta(min_length=1)
"""Not empty if given: in IronCurtain a rule with an empty condition never matches, here it would always match."""


class CompiledPaths(msgspec.Struct):
    """Paths below a folder."""

    roles: Annotated[list[Role], _NOT_EMPTY]
    within: str


class CompiledDomains(msgspec.Struct):
    """Hosts by pattern."""

    roles: Annotated[list[Role], _NOT_EMPTY]
    allowed: list[str]


class CompiledList(msgspec.Struct, rename="camel"):
    """Values on a list; `@name` is a dynamic list."""

    roles: Annotated[list[Role], _NOT_EMPTY]
    allowed: list[str]
    match_type: Literal["domains", "emails", "identifiers"]


class CompiledIf(msgspec.Struct, forbid_unknown_fields=True):
    """The conditions of a rule."""

    roles: Annotated[list[Role], _NOT_EMPTY] = []
    server: Annotated[list[str], _NOT_EMPTY] = []
    tool: Annotated[list[str], _NOT_EMPTY] = []
    paths: CompiledPaths | None = None
    domains: CompiledDomains | None = None
    lists: list[CompiledList] = []


class CompiledRule(msgspec.Struct):
    """One rule."""

    name: str
    condition: CompiledIf = msgspec.field(name="if")
    then: Literal["allow", "deny", "escalate"]
    reason: str = ""
    description: str = ""


class CompiledValues(msgspec.Struct, rename="camel"):
    """A dynamic list with its manual changes."""

    values: list[str] = []
    manual_additions: list[str] = []
    manual_removals: list[str] = []


class CompiledLists(msgspec.Struct):
    """A dynamic-lists.json."""

    lists: dict[str, CompiledValues]


class CompiledPolicy(msgspec.Struct, rename="camel"):
    """A compiled-policy.json, with the parts that IronCurtain keeps elsewhere."""

    rules: list[CompiledRule]
    domain_allowlists: dict[str, list[str]] = {}
    trusted_servers: list[str] = []
    lists: dict[str, CompiledValues] = {}


class CompiledCondition(msgspec.Struct):
    """A test on a sibling argument."""

    arg: str
    equals: Json | msgspec.UnsetType = msgspec.UNSET
    one_of: list[Json] | msgspec.UnsetType = msgspec.field(name="in", default=msgspec.UNSET)
    presence: Literal["present", "absent", "truthy", "falsy"] | None = msgspec.field(name="is", default=None)


class CompiledWhen(msgspec.Struct):
    """Roles under a condition."""

    condition: CompiledCondition
    roles: list[Role]


class CompiledRoles(msgspec.Struct):
    """The roles of an argument that depend on other arguments."""

    default: list[Role]
    when: list[CompiledWhen] = []


class CompiledTool(msgspec.Struct, rename="camel"):
    """What a tool's arguments mean."""

    tool_name: str
    server_name: str
    args: dict[str, list[Role] | CompiledRoles]
    comment: str = ""
    input_schema: JsonObject = {}


class CompiledServer(msgspec.Struct):
    """The tools of a server."""

    tools: list[CompiledTool]


class CompiledAnnotations(msgspec.Struct):
    """A tool-annotations.json."""

    servers: dict[str, CompiledServer]


_CONTAINED: tuple[Role, ...] = ("read-path", "write-path", "delete-path")
"""Roles that need no rule inside the workspace. History is not among them: rewriting it is for the rules to decide."""


_Form = TypeVar("_Form")


def parse_compiled(
    text: str,
    *,
    source: str,
    tools: dict[str, Tool],
    lists: dict[str, tuple[str, ...]],
    values: Mapping[str, str],
) -> PolicyDocument:
    """The policy in a compiled-policy.json. Rules keep their order: the first that matches decides."""
    policy = _decode(text, CompiledPolicy, source)
    lists = lists | {name: _resolved(listed) for name, listed in policy.lists.items()}
    place = ".domainAllowlists"
    try:
        gates = {server: _hosts(allowed, lists) for server, allowed in policy.domain_allowlists.items()}
        rules: list[Rule] = []
        for number, (rule, node) in enumerate(
            zip(policy.rules, _node_at(text, source, ".rules").items(), strict=True)
        ):
            place = f".rules[{number}]"
            rules.append(_rule(rule, node.place, lists, values))
    except ValueError as error:
        _node_at(text, source, place).fail(str(error))
    return PolicyDocument(
        name="compiled-policy",
        source=source,
        trusted_groups=tuple(policy.trusted_servers),
        host_gates=gates,
        rules=(*_BUILT_IN_RULES, *rules),
        tools=tools,
    )


def parse_lists(text: str, *, source: str) -> dict[str, tuple[str, ...]]:
    """The lists in a dynamic-lists.json, by name."""
    return {name: _resolved(listed) for name, listed in _decode(text, CompiledLists, source).lists.items()}


def parse_annotations(text: str, *, source: str) -> dict[str, Tool]:
    """The tools in a tool-annotations.json, by operation."""
    tools = [
        Tool(
            name=f"{server}.{tool.tool_name}",
            description=tool.comment,
            parameters=tool.input_schema or _required_paths(tool),
            roles={argument: _roles(roles) for argument, roles in tool.args.items()},
        )
        for server, listed in _decode(text, CompiledAnnotations, source).servers.items()
        for tool in listed.tools
    ]
    return {tool.name: tool for tool in tools}


def _required_paths(tool: CompiledTool) -> JsonObject:
    """A schema for a tool that has none: a call without one of its paths is invalid, and not a question for a person."""
    paths: list[Json] = [
        name for name, roles in tool.args.items() if isinstance(roles, list) and set(roles) & set(PATH_ROLES)
    ]
    return {"required": paths} if paths else {}


_BUILT_IN_RULES = (
    Rule(
        name="structural-introspection-allow",
        verdict="allow",
        operations=("*.list_allowed_directories",),
        takes_no_arguments=True,
        reason="listing the open folders reveals nothing else",
        source="built-in",
    ),
    Rule(
        name="structural-sandbox-allow",
        verdict="allow",
        roles=_CONTAINED,
        paths=PathTest(roles=_CONTAINED, inside=True),
        reason="it stays inside the workspace",
        source="built-in",
    ),
)


def _decode(text: str, form: type[_Form], source: str) -> _Form:
    try:
        return msgspec.json.decode(text, type=form)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        _node_at(text, source, path.rstrip("`")).fail(message)
    except RecursionError:
        raise InvalidPolicy("is nested too deeply", source=source, line=1, column=1) from None
    except msgspec.DecodeError as error:
        found, content = re.search(r"byte (\d+)", str(error)), text.encode()
        # A truncated file has no position in the message: point at its end.
        line, column = line_and_column(content, int(found[1]) if found else len(content))
        raise InvalidPolicy(f"is not valid JSON: {error}", source=source, line=line, column=column) from None


def _node_at(text: str, source: str, path: str) -> YamlNode:
    """The node at a msgspec path such as `.rules[3].if`. JSON is YAML, and YAML nodes know their line and column."""
    node = read_nodes(text, source)
    for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        if index:
            node = next(item for number, item in enumerate(node.items()) if number == int(index))
        elif key in (fields := node.fields()):
            node = fields[key].node
    return node


def _rule(
    rule: CompiledRule, source: str, lists: dict[str, tuple[str, ...]], values: Mapping[str, str]
) -> Rule:
    condition = rule.condition
    paths = condition.paths
    hosts = condition.domains
    named = [listed for listed in condition.lists if listed.match_type != "domains"]
    domains = [listed for listed in condition.lists if listed.match_type == "domains"]
    if domains and (hosts is not None or len(domains) > 1):
        raise ValueError(f"rule {rule.name!r} has more than one condition on domains")
    missing = [
        one for test in condition.lists for one in test.allowed if one[:1] == "@" and one[1:] not in lists
    ]
    if missing and rule.then == "deny":
        # With an empty list a rule matches nothing. That is safe for an allow rule, but not for a deny rule.
        raise ValueError(f"the deny rule {rule.name!r} uses the list {missing[0]}, which does not exist")
    if domains:
        hosts = CompiledDomains(roles=domains[0].roles, allowed=domains[0].allowed)
    return Rule(
        name=rule.name,
        verdict=rule.then,
        operations=tuple(
            f"{server}.{tool}" for server in condition.server or ("*",) for tool in condition.tool or ("*",)
        )
        if condition.server or condition.tool
        else ("*",),
        reason=rule.reason or rule.description,
        source=source,
        roles=tuple(condition.roles),
        paths=PathTest(roles=tuple(paths.roles), folders=(resolve_folder(paths.within, values),))
        if paths
        else None,
        hosts=HostTest(roles=tuple(hosts.roles), patterns=_hosts(hosts.allowed, lists)) if hosts else None,
        names=tuple(NameTest(roles=tuple(one.roles), names=_expand(one.allowed, lists)) for one in named),
    )


def _hosts(allowed: list[str], lists: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    patterns: list[str] = []
    for text in _expand(allowed, lists):
        pattern = canonical_pattern(text)
        if pattern is None:
            raise ValueError(f"{text!r} is not a host pattern")
        patterns.append(pattern)
    return tuple(patterns)


def _expand(allowed: list[str], lists: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Replace `@name` by the values of the list. A missing list is empty, so its rule never matches."""
    return tuple(
        value for one in allowed for value in (lists.get(one[1:], ()) if one.startswith("@") else (one,))
    )


def _resolved(listed: CompiledValues) -> tuple[str, ...]:
    removed = set(listed.manual_removals)
    return tuple(value for value in [*listed.values, *listed.manual_additions] if value not in removed)


def _roles(roles: list[Role] | CompiledRoles) -> ArgumentRoles:
    if isinstance(roles, list):
        return ArgumentRoles(default=tuple(roles))
    return ArgumentRoles(
        default=tuple(roles.default),
        when=tuple(
            ConditionalRoles(condition=_condition(one.condition), roles=tuple(one.roles))
            for one in roles.when
        ),
    )


def _condition(condition: CompiledCondition) -> Condition:
    one_of = () if condition.one_of is msgspec.UNSET else tuple(condition.one_of)
    equals = None if condition.equals is msgspec.UNSET else condition.equals
    return Condition(argument=condition.arg, equals=equals, one_of=one_of, presence=condition.presence)
