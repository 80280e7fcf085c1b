"""Tools: what can be called, what the arguments mean, and the toolsets that perform calls."""

from collections.abc import Awaitable, Callable, Mapping
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
    "command",
    "payee",
    "identifier",
    "channel",
    "person",
    "secret-value",
    "content",
    "none",
]
"""What an argument refers to. `content` (what is written) and `none` are data, which policies do not judge.

A grant allows any content, but fixes other data to the values that were shown.
"""


class Condition(Value):
    """A test on a sibling argument; exactly one of `equals`, `one_of`, `presence` is set."""

    argument: str
    equals: Json = None
    one_of: tuple[Json, ...] = ()
    presence: Literal["present", "absent", "truthy", "falsy"] | None = None


class ConditionalRoles(Value):
    """Roles that replace the default if the condition is true."""

    condition: Condition
    roles: tuple[Role, ...]


_MAX_KEPT = 1_000
"""Calls that a `FunctionToolset` remembers, so that a host that runs for months does not grow."""


class ArgumentRoles(Value):
    """The roles of one argument: those of the first condition that is true, otherwise the default."""

    default: tuple[Role, ...]
    when: tuple[ConditionalRoles, ...] = ()


class Tool(Value):
    """One callable operation, named `group.verb`. `roles` is None if the meaning of its arguments is unknown."""

    name: str
    description: str = ""
    parameters: JsonObject = msgspec.field(default_factory=dict)
    returns: JsonObject = msgspec.field(default_factory=dict)
    roles: dict[str, ArgumentRoles] | None = None
    is_idempotent: bool = False
    is_read_only: bool = False
    is_destructive: bool = False
    requires_approval: bool = False
    """A person must approve every call, or have granted it: a policy that allows it is not enough."""
    asks_person: bool = False
    """The result is a person's own words: the call waits for the person whatever the policy allows, and no grant covers it."""

    @property
    def group(self) -> str:
        """The server or toolset: the part before the first dot."""
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        """The tool's name within its group."""
        return self.name.partition(".")[2]

    @property
    def digest(self) -> str:
        """Identifies this exact definition; a changed description or schema makes another tool."""
        return digest(self)


class Change(Value):
    """One file that a call created, modified or deleted. `before` and `after` name the blobs of its contents."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    before: str | None = None
    after: str | None = None
    is_staged: bool = False
    mode: int | None = None
    asks: str = ""
    """For a staged change that a program made: why the policy wants a person to approve it by name before it is committed."""


class FileEffect(Value):
    """One file that a program created, modified or deleted in its sandbox, relative to the workspace with what is staged.

    It is not a change of the workspace yet: the gate judges it as a write or a deletion, and then writes, stages or drops it.
    """

    path: str = ""
    kind: Literal["created", "modified", "deleted"] = "modified"
    digest: str = ""
    """SHA-256 of the new content; empty if deleted."""
    size: int = 0
    mode: int | None = None
    """The new mode bits, without setuid, setgid and sticky; LINK_MODE for a symlink, whose content is its target."""


class Performed(Value):
    """What performing a call produced: the result for the guest, the cost and the changed files."""

    result: Json = None
    amount: Amount = NOTHING
    changes: tuple[Change, ...] = ()


Progress = Callable[[str], None]


class Toolset(Protocol):
    """Performs calls: the world, an MCP server, a model or a team. Only the gate calls `perform`."""

    def tools(self) -> tuple[Tool, ...]:
        """List the tools that can be called now."""
        ...

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Perform a call that was judged. Raises ToolError, PathRefused, QuotaExceeded or OSError; can be cancelled."""
        ...


@runtime_checkable
class CostEstimator(Protocol):
    """A toolset that knows the maximum cost of a call in advance, so that the gate can reserve it."""

    def max_cost(self, call: Call) -> Amount:
        """The maximum that this call can spend, not counting the call itself."""
        ...


@runtime_checkable
class Reviewable(Protocol):
    """A toolset whose descriptions come from outside."""

    @property
    def unread_tools(self) -> tuple[Tool, ...]:
        """The tools whose descriptions no person has read: a stranger's words. One that was offered before and is gone counts."""
        ...


@runtime_checkable
class TimeLimited(Protocol):
    """A toolset whose calls carry a time limit of their own, such as a program that may run for minutes."""

    def time_limit(self, call: Call) -> float | None:
        """How many seconds the call may take, including what follows it; None for the limit of every call."""
        ...


class FunctionToolset:
    """A toolset of Python functions and coroutine functions: the public fake, and the easiest way to provide your own tools."""

    def __init__(
        self, functions: Mapping[str, tuple[Tool, Callable[[JsonObject], Json | Awaitable[Json]]]]
    ) -> None:
        self._functions = functions
        self.performed: list[Call] = []
        """The latest calls."""

    def tools(self) -> tuple[Tool, ...]:
        return tuple([tool for tool, _ in self._functions.values()])

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                f"{call.operation} takes effect immediately and cannot be staged",
                hint="change the policy to allow, deny or escalate it",
            )
        self.performed.append(call)
        del self.performed[:-_MAX_KEPT]
        _, function = self._functions[call.operation]
        result = function(call.arguments)
        return Performed(result=await result if isinstance(result, Awaitable) else result)
