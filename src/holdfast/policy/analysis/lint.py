"""Policy lint: rules that are unreachable or too permissive, unknown operations, missing examples and reasons.

A rule is unreachable if an earlier rule subsumes it. A test is vacuous if it can never pass.
"""

from collections.abc import Iterator
from typing import Literal

from holdfast.core import Value, restricts
from holdfast.policy.analysis.subsumption import Subsumption, subsumes_operation
from holdfast.policy.analysis.vacuous import redundant_tests, vacuous_tests
from holdfast.policy.document import PolicyDocument, Rule, matches_operation
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.tool_roles import BUILT_IN_GROUPS, KNOWN_TOOLS

LintCode = Literal[
    "unreachable", "vacuous", "no-rest", "redundant", "too-open", "unknown-operation", "cannot-stage", "no-example", "no-reason",
]  # fmt: skip


class LintFinding(Value):
    """One result of lint. A warning is likely a mistake, a note is advice."""

    code: LintCode
    level: Literal["warning", "note"]
    rule: str
    source: str
    message: str


def lint(policy: RulePolicy) -> tuple[LintFinding, ...]:
    """Check a policy, in the order of its rules. Only certain cases are reported as unreachable."""
    document = policy.document
    found = list(_check_trusted(document))
    tools = document.tools | KNOWN_TOOLS
    earlier = Subsumption()
    for rule in document.rules:
        found += _check_reachable(document, rule, earlier.subsuming_rule(rule))
        found += _check_permissive(rule)
        found += _check_operations(document, rule)
        found += [_finding("vacuous", rule, problem) for problem in vacuous_tests(rule, tools)]
        found += [_finding("redundant", rule, problem, level="note") for problem in redundant_tests(rule)]
        found += _check_documented(rule)
        found += _check_rest(document, rule)
        earlier.add(rule)
    return tuple(found)


def _check_trusted(document: PolicyDocument) -> Iterator[LintFinding]:
    for group in document.trusted_groups:
        if any(name.partition(".")[0] == group for name in KNOWN_TOOLS):
            message = f"`trusted` allows every call of {group!r} without judging it"
            yield LintFinding(
                code="too-open", level="warning", rule="trusted", source=document.source, message=message
            )


def _check_reachable(document: PolicyDocument, rule: Rule, subsuming: Rule | None) -> Iterator[LintFinding]:
    if subsuming is not None:
        yield _finding(
            "unreachable", rule, f"is never reached: {subsuming.name!r} ({subsuming.source}) decides first"
        )
    elif all(_is_refused_by_lists(document, operation) for operation in rule.operations):
        yield _finding("unreachable", rule, "is never reached: the operation lists refuse its operations")


def _check_permissive(rule: Rule) -> Iterator[LintFinding]:
    if restricts(rule.verdict):
        return
    if rule.is_unconditional and "*" in rule.operations:
        yield _finding("too-open", rule, "allows everything; name operations, roles or paths")
    paths = rule.paths
    if paths is not None and ((paths.inside and paths.outside) or "/" in paths.folders):
        yield _finding("too-open", rule, "allows every path, including those outside the workspace")


def _check_operations(document: PolicyDocument, rule: Rule) -> Iterator[LintFinding]:
    """An operation that a known group does not have is probably misspelled."""
    groups = BUILT_IN_GROUPS | {name.partition(".")[0] for name in document.tools}
    known = document.tools.keys() | KNOWN_TOOLS.keys()
    for operation in rule.operations if not rule.is_inherited else ():
        is_known = any(matches_operation(operation, name) for name in known)
        if operation.partition(".")[0] in groups and not is_known:
            yield _finding("unknown-operation", rule, f"names {operation!r}, which does not exist")
        if rule.verdict == "stage" and not operation.startswith("world."):
            yield _finding("cannot-stage", rule, f"stages {operation!r}; only world operations can be staged")


def _check_rest(document: PolicyDocument, rule: Rule) -> Iterator[LintFinding]:
    """What a rule with `from` passes over should be asked about, and not fall to the default."""
    later = document.rules[document.rules.index(rule) + 1 :]
    asks = [each for each in later if each.verdict == "escalate"]
    for operation in rule.operations if rule.levels else ():
        if not any(subsumes_operation(pattern, operation) for each in asks for pattern in each.operations):
            message = (
                f"asks for a level, and no later rule asks a person about {operation!r}: the rest is denied"
            )
            yield _finding("no-rest", rule, message, level="note")


def _check_documented(rule: Rule) -> Iterator[LintFinding]:
    if rule.source == "built-in" or rule.is_inherited:
        return
    if not rule.matches:
        yield _finding("no-example", rule, "has no example of a call that it matches", level="note")
    if not rule.misses and not rule.is_unconditional:
        yield _finding("no-example", rule, "has no example of a call that it must not match", level="note")
    if not rule.reason:
        yield _finding("no-reason", rule, "has no reason to show when it asks for approval", level="note")


def _is_refused_by_lists(document: PolicyDocument, operation: str) -> bool:
    if any(subsumes_operation(pattern, operation) for pattern in document.denied_operations):
        return True
    allowed = document.allowed_operations
    if allowed is None or "*" in operation:
        return False
    return not any(matches_operation(pattern, operation) for pattern in allowed)


def _finding(
    code: LintCode,
    rule: Rule,
    message: str,
    *,
    level: Literal["warning", "note"] = "warning",
) -> LintFinding:
    return LintFinding(
        code=code, level=level, rule=rule.name, source=rule.source, message=f"{rule.name!r} {message}"
    )
