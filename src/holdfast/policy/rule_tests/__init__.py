"""Rule tests: the conditions of a rule, one class for each kind. `table` makes them from a rule, `prepared_rule` applies them."""

from holdfast.policy.rule_tests.contract import CallTest, RuleTest, TargetTest
from holdfast.policy.rule_tests.prepared_rule import PreparedRule
from holdfast.policy.rule_tests.table import prepare_tests

__all__ = ["CallTest", "PreparedRule", "RuleTest", "TargetTest", "prepare_tests"]
