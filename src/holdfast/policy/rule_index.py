"""Finds the few rules that can speak of a claim among many, in their order.

A rule is filed under what a target must begin with for the rule to hold: the literal start of a glob, a folder, a
host, a name. A target is looked up under each of its own beginnings, so the work grows with the depth of a path and
not with the number of rules. Rules that begin with a wildcard, or ask for nothing of the kind, are tried every time.
"""

from collections.abc import Iterator

from holdfast.core import NameTarget, PathTarget, Role, Target, UrlTarget
from holdfast.core.globs import casefold_path
from holdfast.policy.contract import Request
from holdfast.policy.document import matches_operation
from holdfast.policy.matching import PreparedRule
from holdfast.policy.targets import takes_all

_Numbered = tuple[int, PreparedRule]


class RuleIndex:
    """Rules by operation, and within it by the role and the beginning of a target."""

    def __init__(self, rules: list[PreparedRule]) -> None:
        self._rules = rules
        self._by_operation: dict[str, tuple[PreparedRule, ...]] = {}
        self._drawers: dict[tuple[str, Role | None], _Drawer] = {}

    def for_operation(self, operation: str) -> tuple[PreparedRule, ...]:
        """The rules that name an operation, in order."""
        found = self._by_operation.get(operation)
        if found is None:
            found = self._by_operation[operation] = tuple(
                rule
                for rule in self._rules
                if any(matches_operation(pattern, operation) for pattern in rule.operations)
            )
        return found

    def candidates(
        self, request: Request, role: Role | None, target: Target | None
    ) -> Iterator[PreparedRule] | tuple[PreparedRule, ...]:
        """The rules that may hold for a claim, in order; every rule that does hold is among them."""
        operation = request.call.operation
        drawer = self._drawers.get((operation, role))
        if drawer is None:
            drawer = self._drawers[operation, role] = _Drawer(self.for_operation(operation), role)
        return drawer.candidates(target, request)


class _Drawer:
    """The rules for one operation and one role."""

    def __init__(self, rules: tuple[PreparedRule, ...], role: Role | None) -> None:
        always: list[_Numbered] = []
        filed: dict[str, list[_Numbered]] = {}
        deep: list[_Numbered] = []
        for number, rule in enumerate(rules):
            if not rule.speaks_of(role):
                continue
            beginnings = _beginnings_of_rule(rule, role)
            if beginnings and rule.rule.is_restrictive and rule.paths is not None:
                deep.append((number, rule))
            for beginning in beginnings or ():
                filed.setdefault(beginning, []).append((number, rule))
            if beginnings is None:
                always.append((number, rule))
        self._always = tuple(always)
        self._always_rules = tuple(rule for _, rule in always)
        self._filed = filed
        self._deep = tuple(deep)
        """Those that also hold up a folder in which something lies that they name."""
        self._deepest = max((beginning.count("/") for beginning in filed), default=0)

    def candidates(
        self, target: Target | None, request: Request
    ) -> Iterator[PreparedRule] | tuple[PreparedRule, ...]:
        if target is None or not self._filed:
            return self._always_rules
        found = {
            number: rule
            for beginning in _beginnings_of_target(target, self._deepest)
            for number, rule in self._filed.get(beginning, ())
        }
        if self._deep and takes_all(target, request.targets):
            found.update(self._deep)
        if not found:
            return self._always_rules
        found.update(self._always)
        return (found[number] for number in sorted(found))


def _beginnings_of_rule(rule: PreparedRule, role: Role | None) -> set[str] | None:
    """Where the rule is filed; None where it has to be tried every time."""
    if role is None:
        return None
    paths, hosts = rule.rule.paths, rule.rule.hosts
    if paths is not None and rule.paths is not None and role in paths.roles:
        if paths.inside or paths.outside:
            return None
        beginnings = {casefold_path(glob.literal_prefix) for glob in rule.paths.globs} | set(
            rule.paths.folders
        )
        return None if "" in beginnings else beginnings
    if hosts is not None and role in hosts.roles:
        names = {pattern.partition("/")[0] for pattern in hosts.patterns}
        plain = {name.removeprefix("*.") for name in names if ":" not in name and name != "*"}
        return plain if len(plain) == len({name.removeprefix("*.") for name in names}) else None
    for test in rule.rule.names:
        if role in test.roles:
            return (
                None
                if any(name.startswith("*") for name in test.names)
                else {casefold_path(n) for n in test.names}
            )
    return None


def _beginnings_of_target(target: Target, deepest: int) -> Iterator[str]:
    match target:
        case PathTarget():
            inside, real = target.location.inside, target.location.real
            if inside is not None:
                yield from _folders(casefold_path(inside), deepest)
            yield from _folders(real, deepest)
        case UrlTarget():
            host = target.host
            yield host
            while "." in host:
                host = host.partition(".")[2]
                yield host
        case NameTarget():
            yield casefold_path(target.value)


def _folders(path: str, deepest: int) -> Iterator[str]:
    """The folders a path lies in, from the top and no deeper than any rule is filed, and the path itself."""
    end = -1
    for _ in range(deepest + 1):
        end = path.find("/", end + 1)
        if end < 0:
            yield path
            return
        if end > 0:
            yield path[:end]
