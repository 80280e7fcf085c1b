"""An index that finds the few rules that can match a claim, in their order.

The index keys a rule by the prefix that a target must have for the rule to match: the literal prefix of a glob, a folder,
a host, a name. A target is looked up by each of its own prefixes, so the cost grows with the depth of a path and not with
the number of rules. Rules that start with a wildcard or have no such test are tried every time.
"""

from collections.abc import Iterator

from holdfast.core import NameTarget, PathTarget, Role, Target, UrlTarget
from holdfast.core.globs import casefold_path
from holdfast.policy.contract import Request
from holdfast.policy.document import matches_operation
from holdfast.policy.match import PreparedRule
from holdfast.policy.targets import includes_subtree

_Numbered = tuple[int, PreparedRule]


class RuleIndex:
    """Rules by operation, then by the role and the prefixes of a target."""

    def __init__(self, rules: list[PreparedRule]) -> None:
        self._rules = rules
        self._by_operation: dict[str, tuple[PreparedRule, ...]] = {}
        self._role_indexes: dict[tuple[str, Role | None], _RoleIndex] = {}

    def for_operation(self, operation: str) -> tuple[PreparedRule, ...]:
        """The rules for an operation, in order."""
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
        """The rules that may match a claim, in order. Every rule that does match is among them."""
        operation = request.call.operation
        role_index = self._role_indexes.get((operation, role))
        if role_index is None:
            role_index = self._role_indexes[operation, role] = _RoleIndex(self.for_operation(operation), role)
        return role_index.candidates(target, request)


class _RoleIndex:
    """The rules for one operation and one role."""

    def __init__(self, rules: tuple[PreparedRule, ...], role: Role | None) -> None:
        unindexed: list[_Numbered] = []
        by_prefix: dict[str, list[_Numbered]] = {}
        subtree_rules: list[_Numbered] = []
        for number, rule in enumerate(rules):
            if not rule.applies_to_role(role):
                continue
            prefixes = _rule_prefixes(rule, role)
            if prefixes and rule.rule.is_restrictive and rule.paths is not None:
                subtree_rules.append((number, rule))
            for prefix in prefixes or ():
                by_prefix.setdefault(prefix, []).append((number, rule))
            if prefixes is None:
                unindexed.append((number, rule))
        self._unindexed = tuple(unindexed)
        self._unindexed_rules = tuple(rule for _, rule in unindexed)
        self._by_prefix = by_prefix
        self._subtree_rules = tuple(subtree_rules)
        """Rules that also match a folder which contains something they name."""
        self._max_depth = max((prefix.count("/") for prefix in by_prefix), default=0)

    def candidates(
        self, target: Target | None, request: Request
    ) -> Iterator[PreparedRule] | tuple[PreparedRule, ...]:
        if target is None or not self._by_prefix:
            return self._unindexed_rules
        found = {
            number: rule
            for prefix in _target_prefixes(target, self._max_depth)
            for number, rule in self._by_prefix.get(prefix, ())
        }
        if self._subtree_rules and includes_subtree(target, request.targets):
            found.update(self._subtree_rules)
        if not found:
            return self._unindexed_rules
        found.update(self._unindexed)
        return (found[number] for number in sorted(found))


def _rule_prefixes(rule: PreparedRule, role: Role | None) -> set[str] | None:
    """The prefixes that index the rule; None if it has to be tried every time."""
    if role is None:
        return None
    paths, hosts = rule.rule.paths, rule.rule.hosts
    if paths is not None and rule.paths is not None and role in paths.roles:
        if paths.inside or paths.outside:
            return None
        prefixes = {casefold_path(glob.literal_prefix) for glob in rule.paths.globs} | set(rule.paths.folders)
        return None if "" in prefixes else prefixes
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


def _target_prefixes(target: Target, max_depth: int) -> Iterator[str]:
    match target:
        case PathTarget():
            inside, real = target.location.inside, target.location.real
            if inside is not None:
                yield from _folders(casefold_path(inside), max_depth)
            yield from _folders(real, max_depth)
        case UrlTarget():
            host = target.host
            yield host
            while "." in host:
                host = host.partition(".")[2]
                yield host
        case NameTarget():
            yield casefold_path(target.value)


def _folders(path: str, max_depth: int) -> Iterator[str]:
    """The folders above a path, from the top and no deeper than any indexed prefix, and the path itself."""
    end = -1
    for _ in range(max_depth + 1):
        end = path.find("/", end + 1)
        if end < 0:
            yield path
            return
        if end > 0:
            yield path[:end]
