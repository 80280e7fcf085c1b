"""The shapes of IronCurtain's files, as they stand on disk."""

from typing import Annotated, Literal

import msgspec

from holdfast.core import Json, JsonObject, Role

_SOME = msgspec.Meta(min_length=1)
"""Not empty where it is given: to IronCurtain a rule for none of something never holds, to us it would hold always."""


class CompiledPaths(msgspec.Struct):
    """Paths below a folder."""

    roles: Annotated[list[Role], _SOME]
    within: str


class CompiledDomains(msgspec.Struct):
    """Hosts by pattern."""

    roles: Annotated[list[Role], _SOME]
    allowed: list[str]


class CompiledList(msgspec.Struct, rename="camel"):
    """Values that stand on a list; `@name` is a dynamic one."""

    roles: Annotated[list[Role], _SOME]
    allowed: list[str]
    match_type: Literal["domains", "emails", "identifiers"]


class CompiledIf(msgspec.Struct, forbid_unknown_fields=True):
    """What has to hold for a rule to match."""

    roles: Annotated[list[Role], _SOME] = []
    server: Annotated[list[str], _SOME] = []
    tool: Annotated[list[str], _SOME] = []
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
    """A dynamic list and what a person changed in it."""

    values: list[str] = []
    manual_additions: list[str] = []
    manual_removals: list[str] = []


class CompiledLists(msgspec.Struct):
    """A dynamic-lists.json."""

    lists: dict[str, CompiledValues]


class CompiledPolicy(msgspec.Struct, rename="camel"):
    """A compiled-policy.json, with what else we read from it."""

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
    """The roles of an argument where they depend on others."""

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
