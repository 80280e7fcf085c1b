"""What a policy would have decided on calls that were made: the effect of a change before it has one.

History holds arguments, not where paths led on that day; so paths are taken by their text. What was refused then because of
where it led, or because nobody offered it, no rule would have saved, and that stays as it was.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.core import STRICTNESS, Call, Decision, Paths, Tool, Value, Verdict
from holdfast.policy.catalogue import KNOWN_TOOLS
from holdfast.policy.contract import Policy, Request
from holdfast.policy.lexical import LexicalPaths
from holdfast.policy.structure import BUILT_IN
from holdfast.policy.targets import targets_of

MAX_SAMPLES = 50
_BEYOND_RULES = frozenset({"structural-protected-path", "structural-unknown-tool", "invalid-arguments"})


class RecordedCall(NamedTuple):
    """A call of the past and what was decided on it."""

    call: Call
    decision: Decision
    session: str = ""
    paths: Paths = LexicalPaths()
    """Where its paths lay."""


class Shift(Value):
    """A call that would be decided otherwise."""

    session: str
    call: Call
    before: Decision
    after: Decision

    @property
    def is_looser(self) -> bool:
        """Whether more would pass than did."""
        return STRICTNESS[self.after.verdict] < STRICTNESS[self.before.verdict]


class Shifts(Value):
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
    shifts: tuple[Shifts, ...]
    samples: tuple[Shift, ...]


def backtest(
    policy: Policy, history: Iterable[RecordedCall], *, tools: Mapping[str, Tool] | None = None
) -> Backtest:
    """Judge recorded calls anew. Tools that are not given are those that come with Holdfast."""
    known = dict(tools or {}) | KNOWN_TOOLS
    counts: Counter[tuple[str, Verdict, Verdict]] = Counter()
    samples: list[Shift] = []
    calls = 0
    for recorded in history:
        calls += 1
        call, before = recorded.call, recorded.decision
        if before.source == BUILT_IN and before.rule in _BEYOND_RULES:
            continue
        tool = known.get(call.operation)
        targets = targets_of(tool, call.arguments, recorded.paths) if tool is not None else ()
        after = policy.judge(Request(call=call, tool=tool, targets=targets))
        if after.verdict == before.verdict:
            continue
        counts[call.operation, before.verdict, after.verdict] += 1
        if len(samples) < MAX_SAMPLES:
            samples.append(Shift(session=recorded.session, call=call, before=before, after=after))
    shifts = [
        Shifts(operation=operation, before=before, after=after, count=count)
        for (operation, before, after), count in counts.most_common()
    ]
    return Backtest(
        policy=policy.name,
        calls=calls,
        changed=counts.total(),
        looser=sum(one.count for one in shifts if STRICTNESS[one.after] < STRICTNESS[one.before]),
        shifts=tuple(shifts),
        samples=tuple(samples),
    )
