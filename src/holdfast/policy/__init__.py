"""Judgement: policies, what they judge, and how they are read. Pure but for loading and for resolving targets."""

from holdfast.policy.arguments import validate_arguments
from holdfast.policy.contract import Policy, Request
from holdfast.policy.fixed import FixedPolicy
from holdfast.policy.globs import match_glob
from holdfast.policy.hosts import canonical_url
from holdfast.policy.lexical import LexicalPaths
from holdfast.policy.load import load_policy, named_policies
from holdfast.policy.rule_policy import RulePolicy
from holdfast.policy.rules import PolicyDocument, Rule
from holdfast.policy.targets import targets_of
from holdfast.policy.tiers import tighten

__all__ = [
    "FixedPolicy",
    "LexicalPaths",
    "Policy",
    "PolicyDocument",
    "Request",
    "Rule",
    "RulePolicy",
    "canonical_url",
    "load_policy",
    "match_glob",
    "named_policies",
    "targets_of",
    "tighten",
    "validate_arguments",
]
