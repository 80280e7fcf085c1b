"""Rules prepared for matching: compiled globs, and folders and hosts in canonical form."""

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
from holdfast.policy.targets import OPAQUE_ROLES, includes_subtree, json_equal
from holdfast.policy.urls import match_host


class PreparedRule:
    """One rule. `mismatch_reason` says why it does not match a claim; `decides` whether a rule that matches is final."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.verdict = rule.verdict
        self.operations = rule.operations
        self.scope = rule.scope
        self.is_unconditional = rule.is_unconditional
        self.host_roles = frozenset(rule.hosts.roles) if rule.hosts is not None else frozenset[Role]()
        """The roles whose hosts it lists. For other roles it matches public hosts only."""
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
        is_about_the_call = not self.scope or self.scope <= OPAQUE_ROLES
        self._applies_to_bare_call = is_about_the_call
        # Opaque roles have no claims of their own, so a restrictive rule about one applies to every claim of the call.
        self._applies_to_all_roles = not self.scope or (is_about_the_call and rule.is_restrictive)

    def applies_to_role(self, role: Role | None) -> bool:
        """Whether the rule applies to claims of this role."""
        return role in self.scope or (
            self._applies_to_bare_call if role is None else self._applies_to_all_roles
        )

    def mismatch_reason(self, role: Role | None, target: Target | None, request: Request) -> str | None:
        """Why the rule does not match this claim; None if it does, even if it matches only some of the other values."""
        if self.is_unconditional:
            return None
        if not self.applies_to_role(role):
            return "it applies to other roles"
        rule = self.rule
        if rule.takes_no_arguments and request.call.arguments:
            return "it is for calls without arguments"
        if self.scope and role not in self.scope and not _with_roles(request.targets, self.scope):
            return "it applies to arguments that the call does not have"
        if self.paths is not None and not self._passes(self.paths, role, target, request):
            return "the path does not match its paths"
        if self._hosts is not None and not self._passes(self._hosts, role, target, request):
            return "the host does not match its hosts"
        for test in self._names:
            if not self._passes(test, role, target, request):
                return "a name does not match its names"
        for bound in rule.arguments:
            if not _argument_passes(bound, request.call, request.tool):
                return "an argument is out of its bounds"
        return None

    def decides(self, role: Role | None, target: Target | None, request: Request) -> bool:
        """Whether a rule that matches a claim is final. A deny rule is; any other rule only if it matches everything it tests,
        including the call's other values and everything beneath a folder.

        A rule that matches only part of it sets the minimum strictness, and later rules decide. Otherwise one more value in
        the call could lift a deny or avoid an escalation.
        """
        if self.verdict == "deny" or self.is_unconditional:
            return True
        if self.scope and role is not None and role not in self.scope:
            return False
        for test in self._tests:
            if role not in test.roles:
                if not all(test.matches(other) for other in _with_roles(request.targets, test.roles)):
                    return False
            elif self.rule.is_restrictive and (target is None or not test.matches(target)):
                return False
        return True

    def _passes(self, test: "_Test", role: Role | None, target: Target | None, request: Request) -> bool:
        """A test of the claim's own role tests its target. A test of other roles needs one match among all targets of the call."""
        if role in test.roles:
            return target is not None and test.matches_or_contains(target, request)
        return any(
            test.matches_or_contains(other, request) for other in _with_roles(request.targets, test.roles)
        )


class _Test:
    """A test of targets with certain roles."""

    roles: frozenset[Role]

    def matches(self, target: Target) -> bool:
        """Whether the target matches."""
        raise NotImplementedError

    def matches_or_contains(self, target: Target, request: Request) -> bool:
        """Whether the target matches, or something beneath it that the call includes."""
        return self.matches(target)


class _Paths(_Test):
    def __init__(self, test: PathTest, *, for_deny: bool) -> None:
        self.test = test
        self.roles = frozenset(test.roles)
        self.globs = [compile_glob(pattern, for_deny) for pattern in test.globs]
        self.folders = tuple(folder.rstrip("/") for folder in test.folders)
        self._reaches_into_folders = for_deny and bool(self.globs or self.folders)

    def matches(self, target: Target) -> bool:
        if not isinstance(target, PathTarget):
            return False
        location, real = target.location, target.location.real
        if location.inside is None:
            if self.test.outside:
                return True
        elif self.test.inside or any(glob.matches(location.inside) for glob in self.globs):
            return True
        return any(real == folder or real.startswith(folder + "/") for folder in self.folders)

    def matches_or_contains(self, target: Target, request: Request) -> bool:
        if self.matches(target):
            return True
        if not self._reaches_into_folders or not isinstance(target, PathTarget):
            return False
        return includes_subtree(target, request.targets) and self._contains_match(target.location)

    def _contains_match(self, location: Location) -> bool:
        """Whether a folder contains a place that the test names."""
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

    def matches(self, target: Target) -> bool:
        if not isinstance(target, UrlTarget):
            return False
        return any(match_host(one, target, for_deny=self._for_deny) for one in self._patterns)


class _Names(_Test):
    def __init__(self, test: NameTest, *, for_deny: bool) -> None:
        self.roles = frozenset(test.roles)
        self._names = test.names
        self._for_deny = for_deny

    def matches(self, target: Target) -> bool:
        if not isinstance(target, NameTarget):
            return False
        value = casefold_path(target.value) if self._for_deny else target.value
        return any(_name_passes(casefold_path(one) if self._for_deny else one, value) for one in self._names)


def _with_roles(targets: Iterable[Target], roles: frozenset[Role]) -> list[Target]:
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
    return any(json_equal(value, one) for one in test.one_of)


def _default_of(tool: Tool | None, argument: str) -> Json:
    properties = tool.parameters.get("properties") if tool is not None else None
    schema = properties.get(argument) if isinstance(properties, dict) else None
    return schema.get("default") if isinstance(schema, dict) else None
