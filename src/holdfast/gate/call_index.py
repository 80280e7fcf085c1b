"""Index of a session's calls, from its journal: which were answered and which a crash interrupted."""

from itertools import islice
from typing import assert_never

from holdfast.core import Answer, Call, CallId, Failed, Json, Returned
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
from holdfast.gate.refusals import exhausted_dimension, refused_answer

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
        self._same: dict[tuple[int, str], _SameCalls] = {}
        """Identical calls of a turn."""
        self._same_of: dict[CallId, _SameCalls] = {}

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
                self._settle(event)
            case EscalationOpened():
                self.count_same_before(event.escalation.call, event.escalation.digest)

    def record_deferred(self, settled: CallSettled) -> None:
        """Count an outcome whose record may not be on disk yet, so that the call is not executed again."""
        self._settle(settled)

    async def answer(self, call: Call) -> Answer | None:
        """The recorded answer of this call, None if it has none.

        Raises Diverged if the id belongs to a different call, JournalDamaged if the blob of its result is missing.
        """
        if refused := self._refused.get(call.id):
            _check_same(call, refused.call, refused.call.digest)
            return refused_answer(refused.decision)
        if call.id not in self._intended or call.id not in self._settled:
            return None
        intended = self._intended[call.id]
        _check_same(call, intended.call, intended.asked or intended.digest)
        return answer_of(await self._large_values.whole_result(self._settled[call.id]))

    async def settled_answer(self, id: CallId) -> Answer | None:
        """The recorded answer of a call that ended; None if it has not. Raises JournalDamaged."""
        settled = self._settled.get(id)
        return answer_of(await self._large_values.whole_result(settled)) if settled is not None else None

    def recent(self, count: int) -> list[Call]:
        """The last calls that were executed, oldest first."""
        first = max(0, len(self._intended) - count)
        return [event.call for event in islice(self._intended.values(), first, None)]

    def interrupted(self, call: Call) -> CallIntended | None:
        """The intent of a call whose outcome is unknown because the process died in between."""
        intended = self._intended.get(call.id)
        return intended if intended is not None and call.id not in self._settled else None

    def all_interrupted(self) -> tuple[CallIntended, ...]:
        """Every call that was started and has no outcome."""
        return tuple(intended for call, intended in self._intended.items() if call not in self._settled)

    def count_same_before(self, call: Call, digest: str) -> int:
        """How many calls of the same turn had the same operation and arguments before this one, and brought nothing new.

        A call that changed a file, or got another answer than the one before it, starts the count again. Submitting counts: a
        call in flight, or one that waits for approval, counts like a recorded one.
        """
        same = self._same.setdefault((call.turn, digest), _SameCalls())
        self._same_of[call.id] = same
        return same.number(call.id)

    def _settle(self, settled: CallSettled) -> None:
        is_first = settled.call not in self._settled
        self._settled[settled.call] = settled
        if is_first and (same := self._same_of.get(settled.call)):
            same.settle(settled)


class _SameCalls:
    """Identical calls of one turn: how many in a row brought nothing new."""

    def __init__(self) -> None:
        self._numbers: dict[CallId, int] = {}
        self._in_flight: set[CallId] = set()
        self._count = 0
        self._last: CallSettled | None = None

    def number(self, call: CallId) -> int:
        """How many such calls came before this one, when it was first submitted."""
        if call not in self._numbers:
            self._numbers[call] = self._count
            self._in_flight.add(call)
            self._count += 1
        return self._numbers[call]

    def settle(self, settled: CallSettled) -> None:
        """Start the count again if the call brought something new."""
        self._in_flight.discard(settled.call)
        last, self._last = self._last, settled
        if any(change.before != change.after for change in settled.changes):
            self._count = len(self._in_flight)
        elif last is not None and _answer(last) != _answer(settled):
            self._count = len(self._in_flight) + 1


def _answer(settled: CallSettled) -> tuple[str, Json, str]:
    return settled.status, settled.result, settled.error


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
