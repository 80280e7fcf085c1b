"""Index of a session's calls, from its journal: which were answered and which a crash interrupted."""

from typing import assert_never

from holdfast.core import Answer, Call, CallId, Failed, Refused, Returned
from holdfast.core.errors import Diverged
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationOpened,
    RecordedEvent,
)
from holdfast.core.projection import EventSource, Projection
from holdfast.gate.large_values import LargeValues
from holdfast.gate.refusals import exhausted_dimension

_Handled = CallRefused | CallIntended | CallSettled | EscalationOpened


class CallIndex(Projection[_Handled]):
    """How every call ended. A call submitted again under its id gets its recorded answer, whole."""

    def __init__(self, journal: EventSource, *, large_values: LargeValues) -> None:
        self._large_values = large_values
        super().__init__(journal)

    def reset(self) -> None:
        self._refused: dict[CallId, CallRefused] = {}
        self._intended: dict[CallId, CallIntended] = {}
        self._settled: dict[CallId, CallSettled] = {}
        self._same: dict[tuple[int, str], dict[CallId, int]] = {}
        """Identical calls of a turn, each with the number of calls before it."""

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case CallRefused():
                # A refusal for lack of budget is temporary: once there is more, the call is judged again.
                if exhausted_dimension(event.decision) is None:
                    self._refused[event.call.id] = event
                self.count_same_before(event.call, event.call.digest)
            case CallIntended():
                self._intended[event.call.id] = event
                self.count_same_before(event.call, event.digest)
            case CallSettled():
                self._settled[event.call] = event
            case EscalationOpened():
                self.count_same_before(event.escalation.call, event.escalation.digest)

    def record_deferred(self, settled: CallSettled) -> None:
        """Count an outcome whose record may not be on disk yet, so that the call is not executed again."""
        self._settled[settled.call] = settled

    async def answer(self, call: Call) -> Answer | None:
        """The recorded answer of this call, None if it has none.

        Raises Diverged if the id belongs to a different call, JournalDamaged if the blob of its result is missing.
        """
        if refused := self._refused.get(call.id):
            _check_same(call, refused.call, refused.call.digest)
            return Refused(reason=refused.decision.reason, rule=refused.decision.rule)
        if call.id not in self._intended or call.id not in self._settled:
            return None
        intended = self._intended[call.id]
        _check_same(call, intended.call, intended.asked or intended.digest)
        return answer_of(await self._large_values.whole_result(self._settled[call.id]))

    def interrupted(self, call: Call) -> CallIntended | None:
        """The intent of a call whose outcome is unknown because the process died in between."""
        intended = self._intended.get(call.id)
        return intended if intended is not None and call.id not in self._settled else None

    def all_interrupted(self) -> tuple[CallIntended, ...]:
        """Every call that was started and has no outcome."""
        return tuple(intended for call, intended in self._intended.items() if call not in self._settled)

    def count_same_before(self, call: Call, digest: str) -> int:
        """How many calls of the same turn had the same operation and arguments before this one.

        Submitting counts: a call in flight, or one that waits for approval, counts like a recorded one.
        """
        positions = self._same.setdefault((call.turn, digest), {})
        return positions.setdefault(call.id, len(positions))


def answer_of(settled: CallSettled) -> Answer:
    """The answer that a guest gets for a settled call, whose result is whole."""
    match settled.status:
        case "ok":
            blob = settled.whole.digest if settled.whole is not None else ""
            return Returned(value=settled.result, amount=settled.amount, blob=blob)
        case "error":
            error, _, reason = settled.error.partition(": ")
            return Failed(error=error, reason=reason)
        case "timeout" | "cancelled" | "unknown":
            return Failed(error=settled.status, reason=settled.error)
        case _:
            assert_never(settled.status)


def _check_same(call: Call, recorded: Call, asked: str) -> None:
    if call.digest != asked:
        raise Diverged(
            f"call {call.id} was {recorded.operation!r} and is now {call.operation!r} or has other arguments",
            hint="the code ran differently than before; start a new turn",
        )
