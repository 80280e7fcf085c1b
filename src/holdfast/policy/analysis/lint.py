"""Policy lint: rules that are unreachable or too permissive, unknown operations, missing examples and reasons.

A rule is unreachable if an earlier rule subsumes it, which means that it decides every claim the later rule would decide.
`Subsumption` indexes rules by what they name, so that ten thousand rules are compared in seconds.
"""

from collections.abc import Iterator, Set
from typing import Literal

from holdfast.core import STRICTNESS, Value, restricts
from holdfast.policy.document import HostTest, PathTest, PolicyDocument, Rule, matches_operation
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.targets import OPAQUE_ROLES
from holdfast.policy.tool_roles import KNOWN_TOOLS

_ANYWHERE, _OUTSIDE = "", "outside"


class Subsumption:
    """The rules so far, indexed by what a later rule has to name to be subsumed."""

    def __init__(self) -> None:
        self._index: dict[tuple[str, str], list[tuple[int, Rule]]] = {}
        self._count = 0

    def add(self, rule: Rule) -> None:
        """Add the next rule."""
        self._count += 1
        is_limited_to_paths = rule.paths is not None and not rule.paths.inside
        places = _paths_named(rule) if is_limited_to_paths else _hosts_named(rule)
        for operation in rule.operations:
            for place in places or [_ANYWHERE]:
                self._index.setdefault((operation, place), []).append((self._count, rule))

    def subsuming_rule(self, rule: Rule) -> Rule | None:
        """The first rule that decides everything this one would."""
        # A subsuming rule names everything that this rule names, so also the first path and the first host.
        places = [_ANYWHERE, _OUTSIDE, *_paths_named(rule)[:1], *_hosts_named(rule)[:1]]
        found = [
            next((each for each in self._index.get((operation, place), ()) if subsumes(each[1], rule)), None)
            for operation in _wider_operations(rule.operations[0])
            for place in places
        ]
        first = min((each for each in found if each is not None), key=lambda each: each[0], default=None)
        return first[1] if first is not None else None


def subsumes(one: Rule, other: Rule) -> bool:
    """Whether `one` decides every claim that `other` would. False if that is not certain."""
    if one.arguments or one.takes_no_arguments or one.names:
        return False
    if not all(
        any(subsumes_operation(wide, narrow) for wide in one.operations) for narrow in other.operations
    ):
        return False
    if one.scope and (not other.scope <= one.scope or not other.scope - OPAQUE_ROLES):
        return False
    return _paths_subsume(one, other) and _hosts_subsume(one, other)


def subsumes_operation(pattern: str, narrower: str) -> bool:
    """Whether an operation pattern matches everything that a narrower one matches."""
    if pattern in ("*", narrower):
        return True
    return narrower != "*" and not narrower.startswith("*.") and matches_operation(pattern, narrower)


def _paths_subsume(one: Rule, other: Rule) -> bool:
    wide, narrow = one.paths, other.paths
    if wide is None:
        return True
    if narrow is None or not _test_same_targets(one, wide, other, narrow):
        return False
    holds_all = wide.inside and (wide.outside or not narrow.folders)
    if other.is_restrictive and STRICTNESS[one.verdict] < STRICTNESS[other.verdict] and not holds_all:
        return False  # the other matches more, such as a folder that contains what it names
    return _inside_subsumes(wide, narrow) and (
        wide.outside or not (narrow.outside or set(narrow.folders) - set(wide.folders))
    )


def _inside_subsumes(wide: PathTest, narrow: PathTest) -> bool:
    if wide.inside:
        return not narrow.folders or set(narrow.folders) <= set(wide.folders) or wide.outside
    return not narrow.inside and set(narrow.globs) <= set(wide.globs)


def _hosts_subsume(one: Rule, other: Rule) -> bool:
    wide, narrow = one.hosts, other.hosts
    if wide is None:
        return True
    if narrow is None or not _test_same_targets(one, wide, other, narrow):
        return False
    matches_more_spellings = (
        other.is_restrictive and not one.is_restrictive and any("/" in pattern for pattern in narrow.patterns)
    )
    return not matches_more_spellings and set(narrow.patterns) <= set(wide.patterns)


def _test_same_targets(
    one: Rule, wide: PathTest | HostTest, other: Rule, narrow: PathTest | HostTest
) -> bool:
    """Whether the tests of two rules test the same targets for every claim of the second rule."""
    if other.scope <= set(wide.roles) & set(narrow.roles):
        return True  # both test the claim's own target only
    # A rule that matches only some of the values leaves the decision to the other, unless that one is not stricter.
    return set(wide.roles) == set(narrow.roles) and STRICTNESS[one.verdict] >= STRICTNESS[other.verdict]


def _paths_named(rule: Rule) -> list[str]:
    paths = rule.paths
    if paths is None:
        return []
    named = [f"glob {glob}" for glob in paths.globs] + [f"folder {folder}" for folder in paths.folders]
    return [*named, _OUTSIDE] if paths.outside else named


def _hosts_named(rule: Rule) -> list[str]:
    return [f"host {pattern}" for pattern in rule.hosts.patterns] if rule.hosts is not None else []


def _wider_operations(operation: str) -> tuple[str, ...]:
    """The patterns that match every operation that this one matches."""
    group, dot, verb = operation.partition(".")
    return tuple(dict.fromkeys((operation, "*", *((f"{group}.*", f"*.{verb}") if dot else ()))))


class LintFinding(Value):
    """One result of lint. A warning is likely a mistake, a note is advice."""

    code: Literal["unreachable", "too-open", "unknown-operation", "cannot-stage", "no-example", "no-reason"]
    level: Literal["warning", "note"]
    rule: str
    source: str
    message: str


def lint(policy: RulePolicy) -> tuple[LintFinding, ...]:
    """Check a policy, in the order of its rules. Only certain cases are reported as unreachable."""
    document = policy.document
    found = list(_check_trusted(document))
    known = KNOWN_TOOLS.keys() | document.tools.keys()
    earlier = Subsumption()
    for rule in document.rules:
        found += _check_reachable(document, rule, earlier.subsuming_rule(rule))
        found += _check_permissive(rule)
        found += _check_operations(known, rule)
        found += _check_documented(rule)
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


def _check_operations(known: Set[str], rule: Rule) -> Iterator[LintFinding]:
    """An operation that a known group does not have is probably misspelled."""
    for operation in rule.operations:
        siblings = [name for name in known if name.partition(".")[0] == operation.partition(".")[0]]
        if siblings and not any(matches_operation(operation, name) for name in siblings):
            yield _finding("unknown-operation", rule, f"names {operation!r}, which does not exist")
        if rule.verdict == "stage" and not operation.startswith("world."):
            yield _finding("cannot-stage", rule, f"stages {operation!r}; only world operations can be staged")


def _check_documented(rule: Rule) -> Iterator[LintFinding]:
    if rule.source == "built-in":
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
    code: Literal["unreachable", "too-open", "unknown-operation", "cannot-stage", "no-example", "no-reason"],
    rule: Rule,
    message: str,
    *,
    level: Literal["warning", "note"] = "warning",
) -> LintFinding:
    return LintFinding(
        code=code, level=level, rule=rule.name, source=rule.source, message=f"{rule.name!r} {message}"
    )
