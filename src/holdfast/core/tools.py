"""Tools: what can be called, what its arguments mean, and who carries it out."""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import msgspec

from holdfast.core.calls import Call
from holdfast.core.errors import ToolFailed
from holdfast.core.limits import NOTHING, Amount
from holdfast.core.values import Json, JsonObject, Value, digest

Role = Literal[
    "read-path",
    "write-path",
    "delete-path",
    "write-history",
    "delete-history",
    "fetch-url",
    "git-remote-url",
    "github-owner",
    "github-repo",
    "proxy-domain",
    "branch-name",
    "commit-message",
    "email-address",
    "email-body",
    "share-permission",
    "content",
    "none",
]
"""What an argument means to the world. `content` (what is written) and `none` are data: carried, not judged.

A standing yes leaves content open; other data it holds to what was shown.
"""


class Condition(Value):
    """A test on a sibling argument; exactly one of `equals`, `one_of`, `presence` is set."""

    argument: str
    equals: Json = None
    one_of: tuple[Json, ...] = ()
    presence: Literal["present", "absent", "truthy", "falsy"] | None = None


class ConditionalRoles(Value):
    """Roles that hold instead of the default when the condition does."""

    condition: Condition
    roles: tuple[Role, ...]


class ArgumentRoles(Value):
    """The roles of one argument: the first condition that holds decides, else the default."""

    default: tuple[Role, ...]
    when: tuple[ConditionalRoles, ...] = ()


class Tool(Value):
    """One callable operation, named `group.verb`. `roles` None means nobody has said what its arguments mean."""

    name: str
    description: str = ""
    parameters: JsonObject = msgspec.field(default_factory=dict)
    returns: JsonObject = msgspec.field(default_factory=dict)
    roles: dict[str, ArgumentRoles] | None = None
    is_idempotent: bool = False
    is_read_only: bool = False
    is_destructive: bool = False
    asks_person: bool = False
    """Its result is a person's own words: it waits for them whatever the policy allows, and no grant covers it."""

    @property
    def group(self) -> str:
        """The server or toolset: what stands before the first dot."""
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        """The tool's name within its group."""
        return self.name.partition(".")[2]

    @property
    def digest(self) -> str:
        """Names this exact definition; a changed description or schema is another tool."""
        return digest(self)


class Change(Value):
    """One file that a call created, modified or deleted. `before` and `after` name its contents."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    before: str | None = None
    after: str | None = None
    is_staged: bool = False
    mode: int | None = None


class Performed(Value):
    """What carrying out a call brought: a result for the guest, and what it cost and changed."""

    result: Json = None
    amount: Amount = NOTHING
    changes: tuple[Change, ...] = ()


Progress = Callable[[str], None]


class Toolset(Protocol):
    """Who carries out calls: the world, an MCP server, a model, a team. Only the gate calls `perform`."""

    def tools(self) -> tuple[Tool, ...]:
        """What can be called now."""
        ...

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Carry out a call that was judged. Raises ToolError, PathRefused, QuotaExceeded or OSError; may be cancelled."""
        ...


@runtime_checkable
class CostEstimator(Protocol):
    """A toolset that can say beforehand what a call costs at most, so that the gate can hold room for it."""

    def most(self, call: Call) -> Amount:
        """The most that this call can spend, its own count as a call left out."""
        ...


class FunctionToolset:
    """A toolset of plain Python functions: the public fake, and the short way to hand in one's own tools."""

    def __init__(self, functions: dict[str, tuple[Tool, Callable[[JsonObject], Json]]]) -> None:
        self._functions = functions
        self.performed: list[Call] = []

    def tools(self) -> tuple[Tool, ...]:
        return tuple([tool for tool, _ in self._functions.values()])

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                f"{call.operation} acts at once and cannot be staged",
                hint="let the policy allow, deny or escalate it",
            )
        self.performed.append(call)
        _, function = self._functions[call.operation]
        return Performed(result=function(call.arguments))
