"""Subsumption: whether an earlier rule decides every claim that a later rule would, so that the later one is never reached.

`Subsumption` indexes rules by what they name, so that ten thousand rules are compared in seconds.
"""

from collections.abc import Sequence
from itertools import chain

from holdfast.core import STRICTNESS, Json, encode
from holdfast.policy.document import (
    ArgumentTest,
    CommandTest,
    HostTest,
    PathTest,
    Rule,
    WordAlternatives,
    matches_operation,
)
from holdfast.policy.targets import OPAQUE_ROLES, json_equal

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
            for place in places or _programs_named(rule) or _values_named(rule) or [_ANYWHERE]:
                self._index.setdefault((operation, place), []).append((self._count, rule))

    def subsuming_rule(self, rule: Rule) -> Rule | None:
        """The first rule that decides everything this one would."""
        # A subsuming rule names everything that this rule names, so also the first path, host and program.
        named = (_paths_named(rule)[:1], _hosts_named(rule)[:1], _programs_named(rule)[:1])
        places = [_ANYWHERE, _OUTSIDE, *chain(*named), *_first_values(rule)]
        found = [
            next((each for each in self._index.get((operation, place), ()) if subsumes(each[1], rule)), None)
            for operation in _wider_operations(rule.operations[0])
            for place in places
        ]
        first = min((each for each in found if each is not None), key=lambda each: each[0], default=None)
        return first[1] if first is not None else None


def subsumes(one: Rule, other: Rule) -> bool:
    """Whether `one` decides every claim that `other` would. False if that is not certain."""
    if one.takes_no_arguments or one.names or (one.tiers and not _is_part(other.tiers, one.tiers)):
        return False
    if one.levels or (one.needs_own_author and not other.needs_own_author):
        return False
    if not all(
        any(subsumes_operation(wide, narrow) for wide in one.operations) for narrow in other.operations
    ):
        return False
    if one.scope and (not other.scope <= one.scope or not other.scope - OPAQUE_ROLES):
        return False
    is_looser = STRICTNESS[one.verdict] < STRICTNESS[other.verdict]
    if (one.arguments or one.commands is not None) and other.is_restrictive and is_looser:
        return False  # the other reads its tests widely and matches more
    return (
        _paths_subsume(one, other)
        and _hosts_subsume(one, other)
        and _commands_subsume(one, other)
        and all(any(_argument_subsumes(wide, narrow) for narrow in other.arguments) for wide in one.arguments)
    )


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


def _commands_subsume(one: Rule, other: Rule) -> bool:
    wide, narrow = one.commands, other.commands
    if wide is None:
        return True
    if narrow is None or not _test_same_targets(one, wide, other, narrow):
        return False
    return all(any(prefix_subsumes(each, prefix) for each in wide.prefixes) for prefix in narrow.prefixes)


def prefix_subsumes(wide: Sequence[WordAlternatives], narrow: Sequence[WordAlternatives]) -> bool:
    """Whether every command with the longer prefix has the shorter one."""
    return len(wide) <= len(narrow) and all(
        set(some) <= set(wanted) for some, wanted in zip(narrow, wide, strict=False)
    )


def _argument_subsumes(wide: ArgumentTest, narrow: ArgumentTest) -> bool:
    """Whether every value that passes the narrow test passes the wide one, as far as that is certain."""
    if wide.argument != narrow.argument:
        return False
    return (
        (
            not wide.one_of
            or (bool(narrow.one_of) and all(_is_listed(one, wide.one_of) for one in narrow.one_of))
        )
        and (not wide.prefixes or _is_part(narrow.prefixes, wide.prefixes))
        and (not wide.patterns or _is_part(narrow.patterns, wide.patterns))
        and (not wide.globs or _is_part(narrow.globs, wide.globs))
        and _is_bound(wide.at_least, narrow.at_least, 1)
        and _is_bound(wide.at_most, narrow.at_most, -1)
        and _is_bound(wide.shortest, narrow.shortest, 1)
        and _is_bound(wide.longest, narrow.longest, -1)
    )


def _is_bound(wide: float | None, narrow: float | None, sign: int) -> bool:
    return wide is None or (narrow is not None and sign * narrow >= sign * wide)


def _is_part(some: Sequence[str], all_: Sequence[str]) -> bool:
    return bool(some) and set(some) <= set(all_)


def _is_listed(value: Json, values: Sequence[Json]) -> bool:
    return any(json_equal(value, one) for one in values)


def _test_same_targets(
    one: Rule,
    wide: PathTest | HostTest | CommandTest,
    other: Rule,
    narrow: PathTest | HostTest | CommandTest,
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


def _programs_named(rule: Rule) -> list[str]:
    prefixes = rule.commands.prefixes if rule.commands is not None else ()
    return [f"program {program}" for prefix in prefixes for program in prefix[0]]


def _values_named(rule: Rule) -> list[str]:
    """The values that the first test with a list of values names, each with its argument."""
    for test in rule.arguments:
        if test.one_of and not any(isinstance(value, dict | list) for value in test.one_of):
            return [_place(test.argument, value) for value in test.one_of]
    return []


def _first_values(rule: Rule) -> list[str]:
    return [_place(test.argument, test.one_of[0]) for test in rule.arguments if test.one_of]


def _place(argument: str, value: Json) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"value {argument}={encode(value).decode()}"


def _wider_operations(operation: str) -> tuple[str, ...]:
    """The patterns that match every operation that this one matches."""
    group, dot, verb = operation.partition(".")
    return tuple(dict.fromkeys((operation, "*", *((f"{group}.*", f"*.{verb}") if dot else ()))))
