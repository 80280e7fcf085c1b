"""The table of rule tests: which fields of a rule make which tests. A new kind of test is one more entry."""

from collections.abc import Callable, Iterable

from holdfast.policy.document import Rule
from holdfast.policy.rule_tests.arguments import ArgumentMatcher, NoArgumentMatcher
from holdfast.policy.rule_tests.commands import CommandMatcher
from holdfast.policy.rule_tests.contract import RuleTest
from holdfast.policy.rule_tests.levels import LevelMatcher
from holdfast.policy.rule_tests.targets import HostMatcher, NameMatcher, PathMatcher
from holdfast.policy.rule_tests.tiers import TierMatcher

_Prepare = Callable[[Rule, bool], Iterable[RuleTest]]
"""Makes the tests of one kind; the flag says whether the rule restricts, so that it reads its tests widely."""

_TABLE: tuple[_Prepare, ...] = (
    lambda rule, _: [NoArgumentMatcher()] if rule.takes_no_arguments else [],
    lambda rule, _: [TierMatcher(rule.tiers)] if rule.tiers else [],
    lambda rule, wide: [PathMatcher(rule.paths, for_deny=wide)] if rule.paths is not None else [],
    lambda rule, wide: [HostMatcher(rule.hosts, for_deny=wide)] if rule.hosts is not None else [],
    lambda rule, wide: [NameMatcher(test, for_deny=wide) for test in rule.names],
    lambda rule, wide: [CommandMatcher(rule.commands, for_deny=wide)] if rule.commands is not None else [],
    lambda rule, wide: [ArgumentMatcher(test, for_deny=wide) for test in rule.arguments],
    # The last, so that it fails only for a rule that matches in every other way.
    lambda rule, _: [LevelMatcher(rule)] if rule.levels or rule.needs_own_author else [],
)


def prepare_tests(rule: Rule) -> list[RuleTest]:
    """The tests of a rule, ready to match; all of them have to pass."""
    return [test for prepare in _TABLE for test in prepare(rule, rule.is_restrictive)]
