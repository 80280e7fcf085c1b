"""Whether one rule decides everything that another would: found by what both have to name, so that ten thousand rules are
compared in seconds."""

from holdfast.core import STRICTNESS
from holdfast.policy.rules import HostTest, PathTest, Rule, names_operation
from holdfast.policy.targets import OPAQUE_ROLES

_ANYWHERE, _OUTSIDE = "", "outside"


class Covering:
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
    return narrower != "*" and not narrower.startswith("*.") and names_operation(pattern, narrower)


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
