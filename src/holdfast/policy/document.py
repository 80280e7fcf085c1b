"""A policy as data: its rules, lists and tool annotations. Immutable once parsed."""

import msgspec

from holdfast.core import (
    CallLevels,
    Json,
    JsonObject,
    Level,
    Role,
    SandboxTier,
    Tool,
    Value,
    Verdict,
    restricts,
)


class PathTest(Value):
    """Matches a path that meets at least one of these conditions."""

    roles: tuple[Role, ...] = ()
    globs: tuple[str, ...] = ()
    """Relative to the workspace."""
    folders: tuple[str, ...] = ()
    """Absolute; symlinks were resolved when the policy was loaded."""
    inside: bool = False
    outside: bool = False


class HostTest(Value):
    """Matches a URL whose host matches one of the patterns."""

    roles: tuple[Role, ...]
    patterns: tuple[str, ...]


class NameTest(Value):
    """Matches an identifier that is listed; `*@host` matches every address at a host, `*` every identifier."""

    roles: tuple[Role, ...]
    names: tuple[str, ...]


WordAlternatives = tuple[str, ...]
"""The words that one place of a command may have."""


class CommandTest(Value):
    """Matches a command that begins with one of the prefixes."""

    roles: tuple[Role, ...] = ("command",)
    prefixes: tuple[tuple[WordAlternatives, ...], ...] = ()


class ArgumentTest(Value):
    """Matches a call whose argument meets every condition that is given. An omitted argument counts as its default."""

    argument: str
    """A name, or a place inside an argument: `options.mode`, `edits[].path`."""
    one_of: tuple[Json, ...] = ()
    prefixes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    shortest: int | None = None
    """Characters of a text, elements of a list, keys of an object."""
    longest: int | None = None


class LevelTest(Value):
    """Matches a call whose arguments of a role have at least a level."""

    role: Role
    level: Level


class FieldLevels(Value):
    """The levels of the fields of some results."""

    operations: str
    """An operation pattern."""
    own: tuple[str, ...] = ()
    """Fields by name, or by the names that lead to them: `sender`, `result.sender`, `*.amount`."""
    known: tuple[str, ...] = ()


class LabelRules(Value):
    """What the policy says about the origin of values. Everything else is a stranger's."""

    own: tuple[str, ...] = ()
    """Operations whose results are the person's own."""
    known: tuple[str, ...] = ()
    fields: tuple[FieldLevels, ...] = ()
    secret: tuple[str, ...] = ()
    """Operations whose results leave only with an approval."""
    workspace: Level = "own"
    """The level of a file whose content no session wrote."""
    counts_choices: bool = False
    """Whether what decided about a value counts like what is in it."""
    shows: Level = "stranger"
    """The lowest level that the model is shown in words; what is lower is kept for it under a name."""
    asked: tuple[LevelTest, ...] = ()
    """The highest level that a rule asks of each role; set when the policy is parsed."""


class Example(Value):
    """A call written next to a rule, which the rule must match or must not match."""

    operation: str
    arguments: JsonObject = msgspec.field(default_factory=dict)
    tier: SandboxTier = "full"
    """The sandbox in which the example runs, if it runs a command."""
    levels: CallLevels = CallLevels()
    """Where the arguments came from, if the policy asks."""
    line: int = 0
    column: int = 0


class Rule(Value):
    """The verdict for calls, or for targets of calls, that meet every condition of the rule."""

    name: str
    verdict: Verdict
    operations: tuple[str, ...] = ("*",)
    """`group.verb`, `group.*`, `*.verb` or `*`."""
    reason: str = ""
    source: str = ""
    instead: str = ""
    """What the guest can do instead; sent with the refusal."""
    wait_seconds: float | None = None
    """For an escalation: how long a call waits for an answer before it is denied; None if it waits until it is answered."""
    roles: tuple[Role, ...] = ()
    """The rule applies only to targets with these roles. If empty: the roles of its tests, or all."""
    paths: PathTest | None = None
    hosts: HostTest | None = None
    names: tuple[NameTest, ...] = ()
    commands: CommandTest | None = None
    tiers: tuple[SandboxTier, ...] = ()
    """The tiers of the sandbox in which it applies; empty means that it does not ask."""
    arguments: tuple[ArgumentTest, ...] = ()
    takes_no_arguments: bool = False
    levels: tuple[LevelTest, ...] = ()
    is_for_any_author: bool = False
    """Whether it also applies to what was written after a stranger's words were shown (`planned: any`)."""
    needs_own_author: bool = False
    """Whether it does not: so in every policy with labels, unless the rule says otherwise."""
    matches: tuple[Example, ...] = ()
    misses: tuple[Example, ...] = ()
    is_inherited: bool = False
    """Whether it comes from the policy that this one extends. Its examples belong to that policy."""

    @property
    def is_restrictive(self) -> bool:
        """Whether it denies or escalates. The patterns of such rules match more (`for_deny`)."""
        return restricts(self.verdict)

    @property
    def scope(self) -> frozenset[Role]:
        """The roles it applies to; empty means all."""
        if self.roles:
            return frozenset(self.roles)
        tests = (self.paths, self.hosts, self.commands, *self.names)
        return frozenset(role for test in tests if test is not None for role in test.roles)

    @property
    def is_unconditional(self) -> bool:
        """Whether it matches every call of its operations."""
        tests = (self.arguments, self.takes_no_arguments, self.tiers, self.levels, self.needs_own_author)
        return not self.scope and not any(tests)


class PolicyDocument(Value):
    """A whole policy."""

    name: str
    description: str = ""
    source: str = ""
    allowed_operations: tuple[str, ...] | None = None
    """If not None, all other operations are refused."""
    denied_operations: tuple[str, ...] = ()
    trusted_groups: tuple[str, ...] = ()
    """Tool groups that are part of the host. The rules do not judge their calls; protected paths stay refused."""
    host_gates: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By tool group: the hosts that need no approval."""
    rules: tuple[Rule, ...] = ()
    tools: dict[str, Tool] = msgspec.field(default_factory=dict)
    """Argument roles for tools that do not declare their own."""
    sandboxes: tuple[str, ...] | None = None
    """The engines that may run code, in order of preference; None means any."""
    labels: LabelRules | None = None
    """The levels of results; None if the policy does not ask where values come from."""
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Named groups of operations, for policies that extend this one."""


def matches_operation(pattern: str, operation: str) -> bool:
    """Whether an operation pattern of a rule or a list matches an operation."""
    if pattern in ("*", operation):
        return True
    if pattern.endswith(".*"):
        return operation.startswith(pattern[:-1])
    return pattern.startswith("*.") and operation.partition(".")[2] == pattern[2:]
