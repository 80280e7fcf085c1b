"""Finds what is probably wrong with a policy that loads: rules never reached, rules too open, rules without examples."""

from collections.abc import Iterator, Set
from typing import Literal

from holdfast.core import Value
from holdfast.policy.catalogue import KNOWN_TOOLS
from holdfast.policy.covering import Covering, names_all
from holdfast.policy.rule_policy import RulePolicy
from holdfast.policy.rules import PolicyDocument, Rule, names_operation


class Finding(Value):
    """One thing to look at. A warning is likely a mistake, a note is advice."""

    code: Literal["unreachable", "too-open", "unknown-operation", "cannot-stage", "no-example", "no-reason"]
    level: Literal["warning", "note"]
    rule: str
    source: str
    message: str


def lint(policy: RulePolicy) -> tuple[Finding, ...]:
    """Everything worth telling, in the order of the rules. Only what is certain is called unreachable."""
    document = policy.document
    found = list(_trusted(document))
    known = KNOWN_TOOLS.keys() | document.tools.keys()
    earlier = Covering()
    for rule in document.rules:
        found += _reachable(document, rule, earlier.cover_of(rule))
        found += _open(rule)
        found += _known(known, rule)
        found += _complete(rule)
        earlier.add(rule)
    return tuple(found)


def _trusted(document: PolicyDocument) -> Iterator[Finding]:
    for group in document.trusted_groups:
        if any(name.partition(".")[0] == group for name in KNOWN_TOOLS):
            message = f"`trusted` lets every call of {group!r} through unjudged"
            yield Finding(
                code="too-open", level="warning", rule="trusted", source=document.source, message=message
            )


def _reachable(document: PolicyDocument, rule: Rule, cover: Rule | None) -> Iterator[Finding]:
    if cover is not None:
        yield _finding(
            "unreachable", rule, f"is never reached: {cover.name!r} ({cover.source}) decides first"
        )
    elif all(_is_listed_out(document, operation) for operation in rule.operations):
        yield _finding("unreachable", rule, "is never reached: the lists of operations refuse its operations")


def _open(rule: Rule) -> Iterator[Finding]:
    if rule.verdict not in ("allow", "stage"):
        return
    if rule.is_unconditional and "*" in rule.operations:
        yield _finding("too-open", rule, "lets everything through; name operations, roles or paths")
    paths = rule.paths
    if paths is not None and ((paths.inside and paths.outside) or "/" in paths.folders):
        yield _finding("too-open", rule, "lets every path through, also those outside the workspace")


def _known(known: Set[str], rule: Rule) -> Iterator[Finding]:
    """A name in a group that we know, which that group does not have, is a slip of the pen."""
    for operation in rule.operations:
        siblings = [name for name in known if name.partition(".")[0] == operation.partition(".")[0]]
        if siblings and not any(names_operation(operation, name) for name in siblings):
            yield _finding("unknown-operation", rule, f"names {operation!r}, which nobody offers")
        if rule.verdict == "stage" and not operation.startswith("world."):
            yield _finding(
                "cannot-stage", rule, f"stages {operation!r}; only operations of the world can be staged"
            )


def _complete(rule: Rule) -> Iterator[Finding]:
    if rule.source == "built-in":
        return
    if not rule.matches:
        yield _finding("no-example", rule, "shows no call that it matches", level="note")
    if not rule.misses and not rule.is_unconditional:
        yield _finding("no-example", rule, "shows no call that it must not match", level="note")
    if not rule.reason:
        yield _finding(
            "no-reason", rule, "gives no reason; a person who is asked will see none", level="note"
        )


def _is_listed_out(document: PolicyDocument, operation: str) -> bool:
    if any(names_all(pattern, operation) for pattern in document.denied_operations):
        return True
    allowed = document.allowed_operations
    if allowed is None or "*" in operation:
        return False
    return not any(names_operation(pattern, operation) for pattern in allowed)


def _finding(
    code: Literal["unreachable", "too-open", "unknown-operation", "cannot-stage", "no-example", "no-reason"],
    rule: Rule,
    message: str,
    *,
    level: Literal["warning", "note"] = "warning",
) -> Finding:
    return Finding(
        code=code, level=level, rule=rule.name, source=rule.source, message=f"{rule.name!r} {message}"
    )
