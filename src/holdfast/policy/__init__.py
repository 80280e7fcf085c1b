"""Judgement: policies, what they judge, and how they are read. Pure but for loading and for resolving targets."""

from holdfast.policy.annotations import annotate
from holdfast.policy.arguments import validate_arguments
from holdfast.policy.backtesting import Backtest, Backtesting, RecordedCall, backtest
from holdfast.policy.catalogue import KNOWN_TOOLS
from holdfast.policy.comparison import Comparison, compare
from holdfast.policy.contract import Policy, Request
from holdfast.policy.examples import ExampleResult, run_examples, tool_for
from holdfast.policy.explanation import Explanation, explain
from holdfast.policy.findings import Finding, lint
from holdfast.policy.fixed import FixedPolicy
from holdfast.policy.git_remotes import Remotes
from holdfast.policy.globs import match_glob
from holdfast.policy.hosts import canonical_url
from holdfast.policy.lexical import LexicalPaths
from holdfast.policy.load import (
    PROJECT_POLICY,
    load_policy,
    named_policies,
    narrowed_by_project,
    policy_text,
)
from holdfast.policy.plain_yaml import UnreadableYaml, compose_plain
from holdfast.policy.reach import loosest
from holdfast.policy.resolving import Resolver
from holdfast.policy.rule_policy import RulePolicy
from holdfast.policy.rules import PolicyDocument, Rule
from holdfast.policy.targets import contents_of, targets_of
from holdfast.policy.tiers import tighten
from holdfast.policy.visibility import visible

__all__ = [
    "KNOWN_TOOLS",
    "PROJECT_POLICY",
    "Backtest",
    "Backtesting",
    "Comparison",
    "ExampleResult",
    "Explanation",
    "Finding",
    "FixedPolicy",
    "LexicalPaths",
    "Policy",
    "PolicyDocument",
    "RecordedCall",
    "Remotes",
    "Request",
    "Resolver",
    "Rule",
    "RulePolicy",
    "UnreadableYaml",
    "annotate",
    "backtest",
    "canonical_url",
    "compare",
    "compose_plain",
    "contents_of",
    "explain",
    "lint",
    "load_policy",
    "loosest",
    "match_glob",
    "named_policies",
    "narrowed_by_project",
    "policy_text",
    "run_examples",
    "targets_of",
    "tighten",
    "tool_for",
    "validate_arguments",
    "visible",
]
