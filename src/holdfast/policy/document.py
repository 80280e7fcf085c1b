"""The data of a policy: rules and what surrounds them. Read from YAML, never changed afterwards."""

import msgspec

from holdfast.core import Json, JsonObject, Role, Tool, Value, Verdict, restricts


class PathTest(Value):
    """A path passes when one of these holds for it."""

    roles: tuple[Role, ...] = ()
    globs: tuple[str, ...] = ()
    """Relative to the workspace."""
    folders: tuple[str, ...] = ()
    """Absolute, symlinks followed when the policy was loaded."""
    inside: bool = False
    outside: bool = False


class HostTest(Value):
    """A URL passes when one of the patterns names its host."""

    roles: tuple[Role, ...]
    patterns: tuple[str, ...]


class NameTest(Value):
    """An identifier passes when it is one of these; `*@host` stands for all addresses of a host, `*` for all."""

    roles: tuple[Role, ...]
    names: tuple[str, ...]


class ArgumentTest(Value):
    """A call passes when this argument is at most so large, or one of these. One left out counts as its default."""

    argument: str
    at_most: float | None = None
    one_of: tuple[Json, ...] = ()


class Example(Value):
    """A call beside a rule that shows what the rule is for."""

    operation: str
    arguments: JsonObject = msgspec.field(default_factory=dict)
    line: int = 0
    column: int = 0


class Rule(Value):
    """What is to happen with calls, or with those of their targets, for which everything said here holds."""

    name: str
    verdict: Verdict
    operations: tuple[str, ...] = ("*",)
    """`group.verb`, `group.*`, `*.verb` or `*`."""
    reason: str = ""
    source: str = ""
    instead: str = ""
    """What the guest may do in its place; told to it with the refusal."""
    roles: tuple[Role, ...] = ()
    """The rule speaks only of targets with these roles; none means those its tests name, or all."""
    paths: PathTest | None = None
    hosts: HostTest | None = None
    names: tuple[NameTest, ...] = ()
    arguments: tuple[ArgumentTest, ...] = ()
    takes_no_arguments: bool = False
    matches: tuple[Example, ...] = ()
    misses: tuple[Example, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Rules that hold something up read their patterns wide."""
        return restricts(self.verdict)

    @property
    def scope(self) -> frozenset[Role]:
        """The roles it speaks of; none means all."""
        if self.roles:
            return frozenset(self.roles)
        tests = (self.paths, self.hosts, *self.names)
        return frozenset(role for test in tests if test is not None for role in test.roles)

    @property
    def is_unconditional(self) -> bool:
        """Whether it holds for every call of its operations."""
        return not (self.scope or self.arguments or self.takes_no_arguments)


class PolicyDocument(Value):
    """A whole policy as data."""

    name: str
    description: str = ""
    source: str = ""
    allowed_operations: tuple[str, ...] | None = None
    """Only these may be called at all; None means no such list."""
    denied_operations: tuple[str, ...] = ()
    trusted_groups: tuple[str, ...] = ()
    """Toolsets that are part of the host: their calls pass unjudged, protected paths aside."""
    host_gates: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """For the calls of a group, the hosts that need no asking."""
    rules: tuple[Rule, ...] = ()
    tools: dict[str, Tool] = msgspec.field(default_factory=dict)
    """What the arguments of tools mean, for tools that do not say so themselves."""
    sandboxes: tuple[str, ...] | None = None
    """Where code may run, the first by preference; None is anywhere."""


def matches_operation(pattern: str, operation: str) -> bool:
    """Whether a pattern of a rule or a list names an operation."""
    if pattern in ("*", operation):
        return True
    if pattern.endswith(".*"):
        return operation.startswith(pattern[:-1])
    return pattern.startswith("*.") and operation.partition(".")[2] == pattern[2:]
