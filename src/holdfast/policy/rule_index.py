"""An index that finds the few rules that can match a claim, in their order.

The index keys a rule by what a claim must have for the rule to match: the literal prefix of a glob, a folder, a host, a
name, a program, the value of an argument, a text that an argument must contain. A target is looked up by each of its own prefixes, so the cost grows with the depth
of a path and not with the number of rules. Rules that start with a wildcard or have no such test are tried every time.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from holdfast.core import CommandTarget, NameTarget, PathTarget, Role, Target, UrlTarget
from holdfast.core.globs import casefold_path
from holdfast.policy.contract import Request
from holdfast.policy.document import matches_operation
from holdfast.policy.rule_tests import RuleTest
from holdfast.policy.rule_tests.arguments import ArgumentMatcher, argument_keys, searched_texts
from holdfast.policy.rule_tests.commands import program_key
from holdfast.policy.rule_tests.literal_search import LiteralSearch
from holdfast.policy.rule_tests.prepared_rule import PreparedRule
from holdfast.policy.rule_tests.targets import PathMatcher
from holdfast.policy.targets import includes_subtree

_Numbered = tuple[int, PreparedRule]


class RuleIndex:
    """Rules by operation, then by the role and the keys of a claim."""

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
        by_key: dict[str, list[_Numbered]] = {}
        subtree_rules: list[_Numbered] = []
        arguments: set[str] = set()
        by_literal: dict[str, dict[str, list[_Numbered]]] = {}
        for number, rule in enumerate(rules):
            if not rule.applies_to_role(role):
                continue
            test, keys = _index_test(rule, role)
            if isinstance(test, PathMatcher) and rule.rule.is_restrictive:
                subtree_rules.append((number, rule))
            if isinstance(test, ArgumentMatcher):
                arguments.add(test.argument)
            for key in keys:
                by_key.setdefault(key, []).append((number, rule))
            if test is not None:
                continue
            pattern = _pattern_test(rule)
            if pattern is not None:
                of_argument = by_literal.setdefault(pattern.argument, {})
                for literal in pattern.literals() or ():
                    of_argument.setdefault(literal, []).append((number, rule))
            else:
                unindexed.append((number, rule))
        self._unindexed = tuple(unindexed)
        self._unindexed_rules = tuple(rule for _, rule in unindexed)
        self._by_key = by_key
        self._patterns = [_PatternIndex(argument, found) for argument, found in by_literal.items()]
        self._arguments = tuple(arguments)
        """The arguments by whose values rules are indexed."""
        self._subtree_rules = tuple(subtree_rules)
        """Rules that also match a folder which contains something they name."""
        self._max_depth = max((key.count("/") for key in by_key), default=0)

    def candidates(
        self, target: Target | None, request: Request
    ) -> Iterator[PreparedRule] | tuple[PreparedRule, ...]:
        if not self._by_key and not self._patterns:
            return self._unindexed_rules
        keys: Iterable[str] = _target_keys(target, self._max_depth) if target is not None else ()
        if self._arguments:
            keys = chain(keys, *(argument_keys(name, request) for name in self._arguments))
        found = {number: rule for key in keys for number, rule in self._by_key.get(key, ())}
        for patterns in self._patterns:
            found.update(patterns.candidates(request))
        if self._subtree_rules and target is not None and includes_subtree(target, request.targets):
            found.update(self._subtree_rules)
        if not found:
            return self._unindexed_rules
        found.update(self._unindexed)
        return (found[number] for number in sorted(found))


class _PatternIndex:
    """The rules that test the text of one argument, by a literal that every text they match contains."""

    def __init__(self, argument: str, by_literal: dict[str, list[_Numbered]]) -> None:
        self._argument = argument
        self._by_literal = by_literal
        self._search = LiteralSearch(by_literal)

    def candidates(self, request: Request) -> Iterator[_Numbered]:
        texts = searched_texts(self._argument, request)
        literals: Iterable[str] = self._by_literal
        if texts is not None:
            literals = {literal for text in texts for literal in self._search.find(text)}
        for literal in literals:
            yield from self._by_literal[literal]


def _pattern_test(rule: PreparedRule) -> ArgumentMatcher | None:
    """The test of a text that indexes a rule, if it has one."""
    for test in rule.call_tests:
        if isinstance(test, ArgumentMatcher) and test.literals() is not None:
            return test
    return None


def _index_test(rule: PreparedRule, role: Role | None) -> tuple[RuleTest | None, frozenset[str]]:
    """The test that indexes a rule, with its keys; None if the rule has to be tried every time."""
    for test in (*(one for one in rule.target_tests if role in one.roles), *rule.call_tests):
        keys = test.index_keys()
        if keys is not None:
            return test, keys
    return None, frozenset()


def _target_keys(target: Target, max_depth: int) -> Iterator[str]:
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
        case CommandTarget():
            for word in target.words if target.is_opaque else target.words[:1]:
                yield program_key(word)


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
