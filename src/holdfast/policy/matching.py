"""A rule made ready to match: globs compiled, folders and hosts in the form they are compared in."""

from collections.abc import Iterable

from holdfast.core import (
    Call,
    Decision,
    Json,
    Location,
    NameTarget,
    PathTarget,
    Role,
    Target,
    Tool,
    UrlTarget,
)
from holdfast.core.globs import casefold_path, compile_glob
from holdfast.policy.contract import Request
from holdfast.policy.document import ArgumentTest, HostTest, NameTest, PathTest, Rule
from holdfast.policy.targets import OPAQUE_ROLES, same, takes_all
from holdfast.policy.urls import match_host


class PreparedRule:
    """One rule; `mismatch_reason` says whether it fits a claim, and if not, why; `decides` whether it then has the last word."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.verdict = rule.verdict
        self.operations = rule.operations
        self.scope = rule.scope
        self.is_unconditional = rule.is_unconditional
        self.host_roles = frozenset(rule.hosts.roles) if rule.hosts is not None else frozenset[Role]()
        """The roles whose hosts it names; of others it speaks only where they are public."""
        self.paths = _Paths(rule.paths, for_deny=rule.is_restrictive) if rule.paths is not None else None
        self._hosts = _Hosts(rule.hosts, for_deny=rule.is_restrictive) if rule.hosts is not None else None
        self._names = [_Names(test, for_deny=rule.is_restrictive) for test in rule.names]
        self._tests: list[_Test] = [
            test for test in (self.paths, self._hosts, *self._names) if test is not None
        ]
        reason = rule.reason or rule.name
        self.decision = Decision(
            verdict=rule.verdict,
            rule=rule.name,
            reason=f"{reason}; instead: {rule.instead}" if rule.instead else reason,
            source=rule.source,
        )
        is_of_call = not self.scope or self.scope <= OPAQUE_ROLES
        self._speaks_of_bare = is_of_call
        # No claim is made for an opaque role; what a rule holds up for its sake, it holds up whatever the claim.
        self._speaks_of_all = not self.scope or (is_of_call and rule.is_restrictive)

    def speaks_of(self, role: Role | None) -> bool:
        """Whether a claim of this role is any business of the rule."""
        return role in self.scope or (self._speaks_of_bare if role is None else self._speaks_of_all)

    def mismatch_reason(self, role: Role | None, target: Target | None, request: Request) -> str | None:
        """Why the rule does not fit this claim; None where it does, be it by some of the values beside it only."""
        if self.is_unconditional:
            return None
        if not self.speaks_of(role):
            return "it speaks of other roles"
        rule = self.rule
        if rule.takes_no_arguments and request.call.arguments:
            return "it is for calls without arguments"
        if self.scope and role not in self.scope and not _having(request.targets, self.scope):
            return "it speaks of arguments that are not given"
        if self.paths is not None and not self._passes(self.paths, role, target, request):
            return "the path is none of its paths"
        if self._hosts is not None and not self._passes(self._hosts, role, target, request):
            return "the host is none of its hosts"
        for test in self._names:
            if not self._passes(test, role, target, request):
                return "a name is none of its names"
        for bound in rule.arguments:
            if not _argument_passes(bound, request.call, request.tool):
                return "an argument is not within its bounds"
        return None

    def decides(self, role: Role | None, target: Target | None, request: Request) -> bool:
        """Whether a rule that fits a claim has the last word on it: a deny has, others where everything that they look at is
        theirs, each value beside the claim's own and all that lies beneath a folder.

        One that fits some of it sets how strict the decision is at least, and the rules behind it decide: otherwise a value
        put beside another would lift a deny, or get round a question.
        """
        if self.verdict == "deny" or self.is_unconditional:
            return True
        if self.scope and role is not None and role not in self.scope:
            return False
        for test in self._tests:
            if role not in test.roles:
                if not all(test.covers(other) for other in _having(request.targets, test.roles)):
                    return False
            elif self.rule.is_restrictive and (target is None or not test.covers(target)):
                return False
        return True

    def _passes(self, test: "_Test", role: Role | None, target: Target | None, request: Request) -> bool:
        """A test of the claim's own role looks at its target; one of other roles at all that the call has: one is enough."""
        if role in test.roles:
            return target is not None and test.touches(target, request)
        return any(test.touches(other, request) for other in _having(request.targets, test.roles))


class _Test:
    """A test of targets with certain roles."""

    roles: frozenset[Role]

    def covers(self, target: Target) -> bool:
        """Whether the target passes."""
        raise NotImplementedError

    def touches(self, target: Target, request: Request) -> bool:
        """Whether the target passes, or something passes that the call takes with it."""
        return self.covers(target)


class _Paths(_Test):
    def __init__(self, test: PathTest, *, for_deny: bool) -> None:
        self.test = test
        self.roles = frozenset(test.roles)
        self.globs = [compile_glob(pattern, for_deny) for pattern in test.globs]
        self.folders = tuple(folder.rstrip("/") for folder in test.folders)
        self._names_places = for_deny and bool(self.globs or self.folders)

    def covers(self, target: Target) -> bool:
        if not isinstance(target, PathTarget):
            return False
        location, real = target.location, target.location.real
        if location.inside is None:
            if self.test.outside:
                return True
        elif self.test.inside or any(glob.matches(location.inside) for glob in self.globs):
            return True
        return any(real == folder or real.startswith(folder + "/") for folder in self.folders)

    def touches(self, target: Target, request: Request) -> bool:
        if self.covers(target):
            return True
        if not self._names_places or not isinstance(target, PathTarget):
            return False
        return takes_all(target, request.targets) and self._lies_beneath(target.location)

    def _lies_beneath(self, location: Location) -> bool:
        """Whoever takes a folder takes what a pattern or a folder beneath it holds back."""
        above = location.real.rstrip("/") + "/"
        if any(folder.startswith(above) for folder in self.folders):
            return True
        if location.inside is None:
            return False
        path = "" if location.inside == "." else casefold_path(location.inside) + "/"
        return any(
            glob.literal_prefix and (glob.literal_prefix + "/").startswith(path) for glob in self.globs
        )


class _Hosts(_Test):
    def __init__(self, test: HostTest, *, for_deny: bool) -> None:
        self.roles = frozenset(test.roles)
        self._patterns = test.patterns
        self._for_deny = for_deny

    def covers(self, target: Target) -> bool:
        if not isinstance(target, UrlTarget):
            return False
        return any(match_host(one, target, for_deny=self._for_deny) for one in self._patterns)


class _Names(_Test):
    def __init__(self, test: NameTest, *, for_deny: bool) -> None:
        self.roles = frozenset(test.roles)
        self._names = test.names
        self._for_deny = for_deny

    def covers(self, target: Target) -> bool:
        if not isinstance(target, NameTarget):
            return False
        value = casefold_path(target.value) if self._for_deny else target.value
        return any(_name_passes(casefold_path(one) if self._for_deny else one, value) for one in self._names)


def _having(targets: Iterable[Target], roles: frozenset[Role]) -> list[Target]:
    return [target for target in targets if target.role in roles]


def _name_passes(name: str, value: str) -> bool:
    if name == "*":
        return bool(value)
    if name.startswith("*@"):
        return value.count("@") == 1 and value.lower().endswith(name[1:].lower()) and value[0] != "@"
    return name == value


def _argument_passes(test: ArgumentTest, call: Call, tool: Tool | None) -> bool:
    value = call.arguments.get(test.argument)
    if value is None:
        value = _default_of(tool, test.argument)
    if test.at_most is not None:
        return isinstance(value, int | float) and not isinstance(value, bool) and value <= test.at_most
    return any(same(value, one) for one in test.one_of)


def _default_of(tool: Tool | None, argument: str) -> Json:
    properties = tool.parameters.get("properties") if tool is not None else None
    schema = properties.get(argument) if isinstance(properties, dict) else None
    return schema.get("default") if isinstance(schema, dict) else None
