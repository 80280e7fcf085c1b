"""Whether one rule decides everything that another would: found by what both have to name, so that ten thousand rules are
compared in seconds.

Finds what is probably wrong with a policy that loads: rules never reached, rules too open, rules without examples.
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
    """The rules so far, filed by what a rule behind them has to name to be covered."""

    def __init__(self) -> None:
        self._filed: dict[tuple[str, str], list[tuple[int, Rule]]] = {}
        self._count = 0

    def add(self, rule: Rule) -> None:
        """The next rule."""
        self._count += 1
        is_held_to_paths = rule.paths is not None and not rule.paths.inside
        places = _paths_named(rule) if is_held_to_paths else _hosts_named(rule)
        for operation in rule.operations:
            for place in places or [_ANYWHERE]:
                self._filed.setdefault((operation, place), []).append((self._count, rule))

    def cover_of(self, rule: Rule) -> Rule | None:
        """The first rule that decides whatever this one would."""
        # A rule that covers it names all that it names, so also the first of each kind.
        places = [_ANYWHERE, _OUTSIDE, *_paths_named(rule)[:1], *_hosts_named(rule)[:1]]
        found = [
            next((each for each in self._filed.get((operation, place), ()) if covers(each[1], rule)), None)
            for operation in _wider(rule.operations[0])
            for place in places
        ]
        first = min((each for each in found if each is not None), key=lambda each: each[0], default=None)
        return first[1] if first is not None else None


def covers(one: Rule, other: Rule) -> bool:
    """Whether every claim that `other` decides is decided by `one` too. False where that is not certain."""
    if one.arguments or one.takes_no_arguments or one.names:
        return False
    if not all(any(names_all(wide, narrow) for wide in one.operations) for narrow in other.operations):
        return False
    if one.scope and (not other.scope <= one.scope or not other.scope - OPAQUE_ROLES):
        return False
    return _paths_cover(one, other) and _hosts_cover(one, other)


def names_all(pattern: str, narrower: str) -> bool:
    """Whether a pattern names every operation that a narrower one names."""
    if pattern in ("*", narrower):
        return True
    return narrower != "*" and not narrower.startswith("*.") and matches_operation(pattern, narrower)


def _paths_cover(one: Rule, other: Rule) -> bool:
    wide, narrow = one.paths, other.paths
    if wide is None:
        return True
    if narrow is None or not _look_at_the_same(one, wide, other, narrow):
        return False
    holds_all = wide.inside and (wide.outside or not narrow.folders)
    if other.is_wide and STRICTNESS[one.verdict] < STRICTNESS[other.verdict] and not holds_all:
        return False  # the other is read wider, or holds up a folder for what lies in it, which is then left to it
    return _inside_covers(wide, narrow) and (
        wide.outside or not (narrow.outside or set(narrow.folders) - set(wide.folders))
    )


def _inside_covers(wide: PathTest, narrow: PathTest) -> bool:
    if wide.inside:
        return not narrow.folders or set(narrow.folders) <= set(wide.folders) or wide.outside
    return not narrow.inside and set(narrow.globs) <= set(wide.globs)


def _hosts_cover(one: Rule, other: Rule) -> bool:
    wide, narrow = one.hosts, other.hosts
    if wide is None:
        return True
    if narrow is None or not _look_at_the_same(one, wide, other, narrow):
        return False
    is_read_wider = other.is_wide and not one.is_wide and any("/" in pattern for pattern in narrow.patterns)
    return not is_read_wider and set(narrow.patterns) <= set(wide.patterns)


def _look_at_the_same(one: Rule, wide: PathTest | HostTest, other: Rule, narrow: PathTest | HostTest) -> bool:
    """Whether the tests of two rules look at the same targets for every claim of the second, so that it changes nothing."""
    if other.scope <= set(wide.roles) & set(narrow.roles):
        return True  # only at the claim's own
    # One that fits only some of the values leaves it to the other, unless that is no stricter.
    return set(wide.roles) == set(narrow.roles) and STRICTNESS[one.verdict] >= STRICTNESS[other.verdict]


def _paths_named(rule: Rule) -> list[str]:
    paths = rule.paths
    if paths is None:
        return []
    named = [f"glob {glob}" for glob in paths.globs] + [f"folder {folder}" for folder in paths.folders]
    return [*named, _OUTSIDE] if paths.outside else named


def _hosts_named(rule: Rule) -> list[str]:
    return [f"host {pattern}" for pattern in rule.hosts.patterns] if rule.hosts is not None else []


def _wider(operation: str) -> tuple[str, ...]:
    """The patterns that name every operation that this one names."""
    group, dot, verb = operation.partition(".")
    return tuple(dict.fromkeys((operation, "*", *((f"{group}.*", f"*.{verb}") if dot else ()))))


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
    earlier = Subsumption()
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
    if restricts(rule.verdict):
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
        if siblings and not any(matches_operation(operation, name) for name in siblings):
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
    return not any(matches_operation(pattern, operation) for pattern in allowed)


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
