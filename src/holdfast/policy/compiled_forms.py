"""The shapes of IronCurtain's files, as they stand on disk."""

from typing import Literal

import msgspec

from holdfast.core import Json, JsonObject, Role


class CompiledPaths(msgspec.Struct):
    roles: list[Role]
    within: str


class CompiledDomains(msgspec.Struct):
    roles: list[Role]
    allowed: list[str]


class CompiledList(msgspec.Struct, rename="camel"):
    roles: list[Role]
    allowed: list[str]
    match_type: Literal["domains", "emails", "identifiers"]


class CompiledIf(msgspec.Struct, forbid_unknown_fields=True):
    roles: list[Role] = []
    server: list[str] = []
    tool: list[str] = []
    paths: CompiledPaths | None = None
    domains: CompiledDomains | None = None
    lists: list[CompiledList] = []


class CompiledRule(msgspec.Struct):
    name: str
    condition: CompiledIf = msgspec.field(name="if")
    then: Literal["allow", "deny", "escalate"]
    reason: str = ""
    description: str = ""


class CompiledValues(msgspec.Struct, rename="camel"):
    values: list[str] = []
    manual_additions: list[str] = []
    manual_removals: list[str] = []


class CompiledLists(msgspec.Struct):
    lists: dict[str, CompiledValues]


class CompiledPolicy(msgspec.Struct, rename="camel"):
    rules: list[CompiledRule]
    domain_allowlists: dict[str, list[str]] = {}
    trusted_servers: list[str] = []
    lists: dict[str, CompiledValues] = {}


class CompiledCondition(msgspec.Struct):
    arg: str
    equals: Json | msgspec.UnsetType = msgspec.UNSET
    one_of: list[Json] | msgspec.UnsetType = msgspec.field(name="in", default=msgspec.UNSET)
    presence: Literal["present", "absent", "truthy", "falsy"] | None = msgspec.field(name="is", default=None)


class CompiledWhen(msgspec.Struct):
    condition: CompiledCondition
    roles: list[Role]


class CompiledRoles(msgspec.Struct):
    default: list[Role]
    when: list[CompiledWhen] = []


class CompiledTool(msgspec.Struct, rename="camel"):
    tool_name: str
    server_name: str
    args: dict[str, list[Role] | CompiledRoles]
    comment: str = ""
    input_schema: JsonObject = {}


class CompiledServer(msgspec.Struct):
    tools: list[CompiledTool]


class CompiledAnnotations(msgspec.Struct):
    servers: dict[str, CompiledServer]
