"""Policies: rules that decide a call. Pure, except for loading a policy and resolving the targets of a call."""

from holdfast.core.globs import match_glob
from holdfast.policy.analysis.backtest import Backtest, BacktestRunner, RecordedCall, backtest
from holdfast.policy.analysis.diff import PolicyDiff, compare_policies
from holdfast.policy.analysis.draft import (
    DRAFT_INSTRUCTIONS,
    Draft,
    Intent,
    check_draft,
    draft_text,
    read_draft,
)
from holdfast.policy.analysis.examples import ExampleResult, run_examples, tool_for
from holdfast.policy.analysis.explain import DecisionExplanation, explain
from holdfast.policy.analysis.lint import LintFinding, lint
from holdfast.policy.analysis.suggest import AnsweredPrompt, Suggestions, suggest
from holdfast.policy.contract import Policy, Request
from holdfast.policy.document import ArgumentTest, FieldLevels, LabelRules, PolicyDocument, Rule
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.facts import NO_FACTS, OwnEndpoints, SessionFacts, has_tier, with_own_server
from holdfast.policy.fixed import FixedPolicy
from holdfast.policy.flow.python_flow import python_flow
from holdfast.policy.flow.result import Flow, Signature, Site, unknown_flow
from holdfast.policy.git_remotes import (
    GitRemotes,
    GitSettings,
)
from holdfast.policy.json_schema import validate_arguments
from holdfast.policy.labels.levels import READER_OPERATIONS, LabelLevels
from holdfast.policy.lexical_paths import LexicalPaths
from holdfast.policy.load import (
    AUTO,
    PROJECT_POLICY,
    load_policy,
    named_policies,
    narrowed_by_project,
    parse_policy_text,
    policy_files,
    policy_for_folder,
    policy_text,
)
from holdfast.policy.plain_yaml import YamlError, parse_plain_yaml, scalar_value
from holdfast.policy.targets import Resolver, contents_of, roles_of, targets_of
from holdfast.policy.tiers import combine
from holdfast.policy.tool_roles import KNOWN_TOOLS, annotate
from holdfast.policy.urls import canonical_url
from holdfast.policy.visibility import (
    asking_rules,
    hide_unreadable_paths,
    most_permissive_verdict,
    read_verdict,
)

__all__ = [
    "AUTO",
    "DRAFT_INSTRUCTIONS",
    "KNOWN_TOOLS",
    "NO_FACTS",
    "PROJECT_POLICY",
    "READER_OPERATIONS",
    "AnsweredPrompt",
    "ArgumentTest",
    "Backtest",
    "BacktestRunner",
    "DecisionExplanation",
    "Draft",
    "ExampleResult",
    "FieldLevels",
    "FixedPolicy",
    "Flow",
    "GitRemotes",
    "GitSettings",
    "Intent",
    "LabelLevels",
    "LabelRules",
    "LexicalPaths",
    "LintFinding",
    "OwnEndpoints",
    "Policy",
    "PolicyDiff",
    "PolicyDocument",
    "RecordedCall",
    "Request",
    "Resolver",
    "Rule",
    "RulePolicy",
    "SessionFacts",
    "Signature",
    "Site",
    "Suggestions",
    "YamlError",
    "annotate",
    "asking_rules",
    "backtest",
    "canonical_url",
    "check_draft",
    "combine",
    "compare_policies",
    "contents_of",
    "draft_text",
    "explain",
    "has_tier",
    "hide_unreadable_paths",
    "lint",
    "load_policy",
    "match_glob",
    "most_permissive_verdict",
    "named_policies",
    "narrowed_by_project",
    "parse_plain_yaml",
    "parse_policy_text",
    "policy_files",
    "policy_for_folder",
    "policy_text",
    "python_flow",
    "read_draft",
    "read_verdict",
    "roles_of",
    "run_examples",
    "scalar_value",
    "suggest",
    "targets_of",
    "tool_for",
    "unknown_flow",
    "validate_arguments",
    "with_own_server",
]
