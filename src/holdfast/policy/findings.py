"""Finds what is probably wrong with a policy that loads: rules never reached, rules too open, rules without examples."""

from collections.abc import Iterator
from typing import Literal

from holdfast.core import Value
from holdfast.policy.catalogue import KNOWN_TOOLS
from holdfast.policy.rule_policy import RulePolicy
from holdfast.policy.rules import HostTest, PathTest, PolicyDocument, Rule, names_operation


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
    for number, rule in enumerate(document.rules):
        found += _reachable(document, rule, document.rules[:number])
        found += _open(rule)
        found += _known(document, rule)
        found += _complete(rule)
    return tuple(found)


def _trusted(document: PolicyDocument) -> Iterator[Finding]:
    for group in document.trusted_groups:
        if any(name.partition(".")[0] == group for name in KNOWN_TOOLS):
            message = f"`trusted` lets every call of {group!r} through unjudged"
            yield Finding(
                code="too-open", level="warning", rule="trusted", source=document.source, message=message
            )


def _reachable(document: PolicyDocument, rule: Rule, earlier: tuple[Rule, ...]) -> Iterator[Finding]:
    cover = next((one for one in earlier if covers(one, rule)), None)
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


def _known(document: PolicyDocument, rule: Rule) -> Iterator[Finding]:
    """A name in a group that we know, which that group does not have, is a slip of the pen."""
    known = KNOWN_TOOLS.keys() | document.tools.keys()
    groups = {name.partition(".")[0] for name in known}
    for operation in rule.operations:
        if operation.partition(".")[0] in groups and not any(
            names_operation(operation, name) for name in known
        ):
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


def covers(one: Rule, other: Rule) -> bool:
    """Whether every claim that `other` decides is decided by `one` too. False where that is not certain."""
    if one.arguments or one.takes_no_arguments or one.names:
        return False
    if not all(any(_names_all(wide, narrow) for wide in one.operations) for narrow in other.operations):
        return False
    if one.scope and not (other.scope and other.scope <= one.scope):
        return False
    return _paths_cover(one, other) and _hosts_cover(one.hosts, other.hosts)


def _names_all(pattern: str, narrower: str) -> bool:
    if pattern in ("*", narrower):
        return True
    return narrower != "*" and not narrower.startswith("*.") and names_operation(pattern, narrower)


def _paths_cover(one: Rule, other: Rule) -> bool:
    wide, narrow = one.paths, other.paths
    if wide is None:
        return True
    if narrow is None or (other.is_wide and not one.is_wide and not wide.inside):
        return False
    return _inside_covers(wide, narrow) and (
        wide.outside or not (narrow.outside or set(narrow.folders) - set(wide.folders))
    )


def _inside_covers(wide: PathTest, narrow: PathTest) -> bool:
    if wide.inside:
        return not narrow.folders or set(narrow.folders) <= set(wide.folders) or wide.outside
    return not narrow.inside and set(narrow.globs) <= set(wide.globs)


def _hosts_cover(wide: HostTest | None, narrow: HostTest | None) -> bool:
    return wide is None or (narrow is not None and set(narrow.patterns) <= set(wide.patterns))


def _is_listed_out(document: PolicyDocument, operation: str) -> bool:
    if any(_names_all(pattern, operation) for pattern in document.denied_operations):
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
