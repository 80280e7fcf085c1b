"""What a policy would have decided on calls that were made: the effect of a change before it has one.

History holds arguments, not where paths led on that day; so paths are taken by their text. What was refused then because of
where it led, or because nobody offered it, no rule would have saved, and that stays as it was.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.core import STRICTNESS, Call, Decision, Paths, Tool, Value, Verdict
from holdfast.policy.contract import Policy, Request
from holdfast.policy.lexical_paths import LexicalPaths
from holdfast.policy.structural import BUILT_IN
from holdfast.policy.targets import targets_of
from holdfast.policy.tool_roles import KNOWN_TOOLS

MAX_SAMPLES = 50
_BEYOND_RULES = frozenset({"structural-protected-path", "structural-unknown-tool", "invalid-arguments"})


class RecordedCall(NamedTuple):
    """A call of the past and what was decided on it."""

    call: Call
    decision: Decision
    session: str = ""
    paths: Paths = LexicalPaths()
    """Where its paths lay."""


class ChangedDecision(Value):
    """A call that would be decided otherwise."""

    session: str
    call: Call
    before: Decision
    after: Decision

    @property
    def is_looser(self) -> bool:
        """Whether more would pass than did."""
        return STRICTNESS[self.after.verdict] < STRICTNESS[self.before.verdict]


class ChangedDecisions(Value):
    """How many calls of one operation go from one verdict to another."""

    operation: str
    before: Verdict
    after: Verdict
    count: int


class Backtest(Value):
    """The outcome over all calls: exact counts, and the first few that changed."""

    policy: str
    calls: int
    changed: int
    looser: int
    shifts: tuple[ChangedDecisions, ...]
    samples: tuple[ChangedDecision, ...]
    unread: tuple[str, ...] = ()
    """Sessions that could not be read, so that nothing here is about them."""


class Backtesting:
    """Judges recorded calls anew as they come, and keeps none but the samples. Tools that are not given are those that come
    with Holdfast."""

    def __init__(self, policy: Policy, *, tools: Mapping[str, Tool] | None = None) -> None:
        self._policy = policy
        self._tools = dict(tools or {}) | KNOWN_TOOLS
        self._counts: Counter[tuple[str, Verdict, Verdict]] = Counter()
        self._samples: list[ChangedDecision] = []
        self._calls = 0

    def judge(self, recorded: RecordedCall) -> None:
        """One more call."""
        self._calls += 1
        call, before = recorded.call, recorded.decision
        if before.source == BUILT_IN and before.rule in _BEYOND_RULES:
            return
        tool = self._tools.get(call.operation)
        targets = targets_of(tool, call.arguments, recorded.paths) if tool is not None else ()
        after = self._policy.judge(Request(call=call, tool=tool, targets=targets))
        if after.verdict == before.verdict:
            return
        self._counts[call.operation, before.verdict, after.verdict] += 1
        if len(self._samples) < MAX_SAMPLES:
            self._samples.append(
                ChangedDecision(session=recorded.session, call=call, before=before, after=after)
            )

    def told(self, *, unread: Iterable[str] = ()) -> Backtest:
        """What came of all so far."""
        shifts = [
            ChangedDecisions(operation=operation, before=before, after=after, count=count)
            for (operation, before, after), count in self._counts.most_common()
        ]
        return Backtest(
            policy=self._policy.name,
            calls=self._calls,
            changed=self._counts.total(),
            looser=sum(one.count for one in shifts if STRICTNESS[one.after] < STRICTNESS[one.before]),
            shifts=tuple(shifts),
            samples=tuple(self._samples),
            unread=tuple(unread),
        )


def backtest(
    policy: Policy, history: Iterable[RecordedCall], *, tools: Mapping[str, Tool] | None = None
) -> Backtest:
    """Judge recorded calls anew, all at once."""
    testing = Backtesting(policy, tools=tools)
    for recorded in history:
        testing.judge(recorded)
    return testing.told()
