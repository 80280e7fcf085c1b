"""Backtesting: what a policy would have decided on recorded calls, so that a change can be checked before it is made.

The history has the arguments of a call, but not where its paths led at the time, so paths are resolved by their text. A call
that was refused by a structural check keeps its decision, because no rule could have changed it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.core import STRICTNESS, Call, Decision, Paths, Tool, Value, Verdict
from holdfast.policy.contract import Policy, Request
from holdfast.policy.facts import NO_FACTS
from holdfast.policy.lexical_paths import LexicalPaths
from holdfast.policy.structural import BUILT_IN
from holdfast.policy.targets import targets_of
from holdfast.policy.tool_roles import KNOWN_TOOLS

MAX_SAMPLES = 50
_STRUCTURAL = frozenset({"structural-protected-path", "structural-unknown-tool", "invalid-arguments"})


class RecordedCall(NamedTuple):
    """A recorded call and its decision."""

    call: Call
    decision: Decision
    session: str = ""
    paths: Paths = LexicalPaths()
    """Resolves the paths of the call."""


class ChangedDecision(Value):
    """A call that would get another verdict."""

    session: str
    call: Call
    before: Decision
    after: Decision

    @property
    def is_looser(self) -> bool:
        """Whether the new verdict is more permissive."""
        return STRICTNESS[self.after.verdict] < STRICTNESS[self.before.verdict]


class ChangedDecisionCount(Value):
    """How many calls of one operation change from one verdict to another."""

    operation: str
    before: Verdict
    after: Verdict
    count: int


class Backtest(Value, rename={"counts": "shifts"}):
    """The result over all calls: exact counts, and the first calls that changed."""

    policy: str
    calls: int
    changed: int
    looser: int
    counts: tuple[ChangedDecisionCount, ...]
    samples: tuple[ChangedDecision, ...]
    unread: tuple[str, ...] = ()
    """Sessions that could not be read and are not part of the result."""


class BacktestRunner:
    """Judges recorded calls one by one and keeps only counts and samples. The built-in tools are always known."""

    def __init__(self, policy: Policy, *, tools: Mapping[str, Tool] | None = None) -> None:
        self._policy = policy
        self._tools = dict(tools or {}) | KNOWN_TOOLS
        self._counts: Counter[tuple[str, Verdict, Verdict]] = Counter()
        self._samples: list[ChangedDecision] = []
        self._calls = 0

    def judge(self, recorded: RecordedCall) -> None:
        """Judge one more call."""
        self._calls += 1
        call, before = recorded.call, recorded.decision
        if before.source == BUILT_IN and before.rule in _STRUCTURAL:
            return
        tool = self._tools.get(call.operation)
        targets = targets_of(tool, call.arguments, recorded.paths) if tool is not None else ()
        facts = before.facts or NO_FACTS
        after = self._policy.judge(Request(call=call, tool=tool, targets=targets, facts=facts))
        if after.verdict == before.verdict:
            return
        self._counts[call.operation, before.verdict, after.verdict] += 1
        if len(self._samples) < MAX_SAMPLES:
            self._samples.append(
                ChangedDecision(session=recorded.session, call=call, before=before, after=after)
            )

    def result(self, *, unread: Iterable[str] = ()) -> Backtest:
        """The result so far."""
        counts = [
            ChangedDecisionCount(operation=operation, before=before, after=after, count=count)
            for (operation, before, after), count in self._counts.most_common()
        ]
        return Backtest(
            policy=self._policy.name,
            calls=self._calls,
            changed=self._counts.total(),
            looser=sum(one.count for one in counts if STRICTNESS[one.after] < STRICTNESS[one.before]),
            counts=tuple(counts),
            samples=tuple(self._samples),
            unread=tuple(unread),
        )


def backtest(
    policy: Policy, history: Iterable[RecordedCall], *, tools: Mapping[str, Tool] | None = None
) -> Backtest:
    """Judge all calls of a history."""
    runner = BacktestRunner(policy, tools=tools)
    for recorded in history:
        runner.judge(recorded)
    return runner.result()
