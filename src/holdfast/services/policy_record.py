"""What the record says about a policy: rules from the prompts that a person answered, and what a policy would have decided."""

from collections.abc import Iterable, Sequence

from holdfast.core import SessionId, Tool, Value
from holdfast.core.errors import JournalDamaged
from holdfast.core.events import EscalationAnswered, EscalationOpened, RecordedEvent
from holdfast.policy import (
    KNOWN_TOOLS,
    NO_FACTS,
    AnsweredPrompt,
    Backtest,
    BacktestRunner,
    RecordedCall,
    Request,
    RulePolicy,
    Suggestions,
    suggest,
    targets_of,
)
from holdfast.services.policy_inputs import RecordedCalls
from holdfast.store import Home, Store

MAX_PROMPTS = 1_000
"""The newest prompts are enough to learn from, and the search grows with their number."""


class SuggestedRules(Value, omit_defaults=False):
    """Suggested rules, and what the policy with them would have decided on all recorded calls."""

    suggestions: Suggestions
    backtest: Backtest
    prompts: int
    """How many prompts were answered."""
    skipped: tuple[tuple[SessionId, str], ...]
    """Sessions whose journal cannot be read, and why."""


class AnsweredPrompts:
    """Collects answered prompts, refused calls and every recorded call from one journal after another."""

    def __init__(self, tools: dict[str, Tool], home: Home) -> None:
        self._tools = tools | KNOWN_TOOLS
        self._calls = RecordedCalls(home.workspace)
        self.prompts: list[AnsweredPrompt] = []
        self.denied: list[Request] = []
        self.calls: list[RecordedCall] = []

    def read(self, recorded: Sequence[RecordedEvent], *, since_ms: int) -> None:
        """Add one journal."""
        opened: dict[str, EscalationOpened] = {}
        for entry in recorded:
            match entry.event:
                case EscalationOpened() as event:
                    opened[event.escalation.id] = event
                case EscalationAnswered() as event if event.escalation in opened and entry.at_ms >= since_ms:
                    escalation = opened[event.escalation].escalation
                    if event.response.arguments is not None:
                        continue  # the person approved another call than the one that was asked about
                    tool = self._tools.get(escalation.call.operation)
                    facts = escalation.decision.facts or NO_FACTS
                    request = Request(
                        call=escalation.call, tool=tool, targets=escalation.targets, facts=facts
                    )
                    is_approved = event.response.verdict == "approve"
                    self.prompts.append(AnsweredPrompt(request, is_approved, escalation.decision.is_staged))
                case _:
                    pass
        for call in self._calls.find(recorded):
            self.calls.append(call)
            if call.decision.verdict == "deny":
                tool = self._tools.get(call.call.operation)
                targets = targets_of(tool, call.call.arguments, call.paths) if tool is not None else ()
                facts = call.decision.facts or NO_FACTS
                self.denied.append(Request(call=call.call, tool=tool, targets=targets, facts=facts))


async def suggest_rules(
    base: RulePolicy, store: Store, home: Home, *, session: str | None = None, since_ms: int = 0
) -> SuggestedRules:
    """Suggest rules on top of a policy, from the answers in one session or in all."""
    found = AnsweredPrompts(base.document.tools, home)
    skipped: list[tuple[SessionId, str]] = []
    for one in await _sessions(store, session):
        try:
            found.read(await store.read(one), since_ms=since_ms)
        except JournalDamaged as damage:
            skipped.append((one, str(damage)))
    result = suggest(base, found.prompts[-MAX_PROMPTS:], denied=found.denied[-MAX_PROMPTS:])
    runner = BacktestRunner(RulePolicy(result.policy), tools=base.document.tools)
    for call in found.calls:
        runner.judge(call)
    return SuggestedRules(
        suggestions=result, backtest=runner.result(), prompts=len(found.prompts), skipped=tuple(skipped)
    )


class RecordedBacktest(Value, omit_defaults=False):
    """A backtest, how many sessions it read, and those that it could not read, with the reason and the way out."""

    backtest: Backtest
    sessions: int
    skipped: tuple[tuple[SessionId, str, str], ...]


async def backtest_recorded(
    policy: RulePolicy, store: Store, home: Home, *, session: str | None = None
) -> RecordedBacktest:
    """What a policy would have decided on the recorded calls of one session or of all."""
    runner, calls = BacktestRunner(policy, tools=policy.document.tools), RecordedCalls(home.workspace)
    skipped: list[tuple[SessionId, str, str]] = []
    sessions = list(await _sessions(store, session))
    for one in sessions:
        try:
            recorded = await store.read(one)
        except JournalDamaged as damage:
            skipped.append((one, str(damage), damage.hint or ""))
            continue
        for call in calls.find(recorded):
            runner.judge(call)
    unread = [one for one, _, _ in skipped]
    return RecordedBacktest(
        backtest=runner.result(unread=unread), sessions=len(sessions) - len(unread), skipped=tuple(skipped)
    )


async def _sessions(store: Store, session: str | None) -> Iterable[SessionId]:
    if session is not None:
        return [await store.find(session)]
    return [summary.id for summary in await store.sessions()]
