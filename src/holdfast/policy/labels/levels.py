"""The level of each part of a result, as the policy declares it. Pure."""

from collections.abc import Sequence

from holdfast.core import LEVELS, Level, Role, lowest
from holdfast.policy.document import FieldLevels, LabelRules, matches_operation

READER_OPERATIONS = frozenset({"llm.complete", "llm.intent"})
"""A model without tools: what it answers has the level of what it was asked."""
_CACHED = 4096


class LabelLevels:
    """Answers for all tiers of a policy: a value has the lowest level that any tier gives it."""

    def __init__(self, tiers: Sequence[LabelRules]) -> None:
        self._tiers = tuple(tiers)
        self._known: dict[tuple[str, tuple[str, ...]], Level] = {}
        self.workspace = lowest(*(rules.workspace for rules in tiers))
        self.counts_choices = any(rules.counts_choices for rules in tiers)
        self.shows = max((rules.shows for rules in tiers), key=_height)
        """The strictest of the tiers."""
        self._has_secrets = any(rules.secret for rules in tiers)
        self._asked: dict[Role, Level] = {}
        for test in (test for rules in tiers for test in rules.asked):
            self._asked[test.role] = max(test.level, self._asked.get(test.role, test.level), key=_height)

    def level_of(self, operation: str, path: tuple[str, ...] = ()) -> Level:
        """The level of a part of a result: the lowest of everything in it."""
        key = operation, path
        level = self._known.get(key)
        if level is None:
            level = lowest(*(_level(rules, operation, path) for rules in self._tiers))
            if len(self._known) < _CACHED:
                self._known[key] = level
        return level

    def asked_of(self, roles: Sequence[Role]) -> Level | None:
        """The highest level that a rule asks of an argument with these roles; None if no rule asks."""
        asked = [level for role in roles if (level := self._asked.get(role)) is not None]
        return max(asked, key=_height, default=None)

    def is_secret(self, operation: str) -> bool:
        """Whether results of an operation leave only with an approval."""
        return self._has_secrets and any(_matches(rules.secret, operation) for rules in self._tiers)


def _height(level: Level) -> int:
    return -LEVELS.index(level)


def _level(rules: LabelRules, operation: str, path: tuple[str, ...]) -> Level:
    rest: Level = "stranger"
    if _matches(rules.own, operation):
        rest = "own"
    elif _matches(rules.known, operation):
        rest = "known"
    declared = _fields_of(rules.fields, operation)
    if declared is None:
        return rest
    inside: list[Level] = []
    for level, names in (("own", declared.own), ("known", declared.known)):
        for name in names:
            steps = tuple(name.split("."))
            if _leads_to(steps, path):
                return level  # type: ignore[return-value]  # one of the two above
            if _may_meet(steps, path):
                inside.append(level)  # type: ignore[arg-type]
    return lowest(rest, *inside)


def _fields_of(fields: Sequence[FieldLevels], operation: str) -> FieldLevels | None:
    """The declaration for an operation: one that names it comes before one for its group."""
    found = [each for each in fields if matches_operation(each.operations, operation)]
    return min(found, key=lambda each: "*" in each.operations, default=None)


def _may_meet(steps: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a declared field may be in the part of a result at a path, or be that part."""
    return all("*" in (step, given) or step == given for step, given in zip(steps, path, strict=False))


def _leads_to(steps: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a path begins with the steps of a declared field. An unknown step is never a declared name."""
    return len(steps) <= len(path) and all(
        step in ("*", given) for step, given in zip(steps, path, strict=False)
    )


def _matches(patterns: Sequence[str], operation: str) -> bool:
    return any(matches_operation(pattern, operation) for pattern in patterns)
