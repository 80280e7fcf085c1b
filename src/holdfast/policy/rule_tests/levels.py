"""Tests of where a call comes from: `from`, and `planned`."""

from holdfast.core import Json, Level, reaches
from holdfast.policy.contract import Request
from holdfast.policy.document import Rule
from holdfast.policy.rule_tests.contract import CallTest
from holdfast.policy.targets import URL_ROLES, roles_of


class LevelProblem(str):
    """Why a rule that matches in every other way does not apply: where the call comes from."""

    __slots__ = ()


class LevelMatcher(CallTest):
    """The levels that a rule wants of the author and of the arguments. Without levels, everything is a stranger's."""

    mismatch = "the policy cannot tell where the call comes from"

    def __init__(self, rule: Rule) -> None:
        self._wanted = {test.role: test.level for test in rule.levels}
        self._needs_own_author = rule.needs_own_author
        self._bounded = {test.argument for test in rule.arguments if test.at_most is not None}
        """Arguments whose size the rule limits: a number up to there may come from anyone."""

    def matches(self, request: Request) -> bool:
        return not self._problem(request)

    def matches_part(self, request: Request) -> bool:
        return self.matches(request)

    def mismatch_in(self, request: Request) -> str:
        return LevelProblem(self._problem(request) or self.mismatch)

    def _problem(self, request: Request) -> str:
        levels = request.facts.levels
        if levels is None:
            return self.mismatch
        if self._needs_own_author and levels.author != "own":
            return f"it was written after words of a {levels.author} were shown, and the rule is for what was planned before"
        if levels.carries_secret and self._leaves(request):
            return "it carries something secret"
        if not self._wanted or not levels.arguments or request.tool is None:
            return ""
        arguments = request.call.arguments
        for name, roles in roles_of(request.tool, arguments).items():
            for role in roles:
                wanted = self._wanted.get(role)
                if wanted is None or arguments.get(name) in (None, "", []):
                    continue
                level = levels.level_of(name)
                if not reaches(level, wanted) and not self._is_bounded(name, arguments[name]):
                    return _problem(name, level, wanted, levels.sources.get(name, ""))
        return ""

    def _leaves(self, request: Request) -> bool:
        """Whether a call can tell someone else something."""
        if request.tool is None or not request.tool.is_read_only:
            return True
        return any(target.role in URL_ROLES for target in request.targets)

    def _is_bounded(self, name: str, value: Json) -> bool:
        return name in self._bounded and isinstance(value, int | float) and not isinstance(value, bool)


def _problem(argument: str, level: Level, wanted: Level, source: str) -> str:
    origin = f"comes from {source} ({level})" if source else f"is of level {level}"
    return f"{argument} {origin}, and the rule wants {wanted}"
