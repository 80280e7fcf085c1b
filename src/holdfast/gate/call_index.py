"""The calls of a session as its journal has them: which were answered, and which a crash cut off."""

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
from holdfast.core.projection import Projection
from holdfast.gate.refusals import exhausted_dimension

_Handled = CallRefused | CallIntended | CallSettled | EscalationOpened


class CallIndex(Projection[_Handled]):
    """What became of every call. A call asked again under its id gets the answer it got before."""

    def reset(self) -> None:
        self._refused: dict[CallId, CallRefused] = {}
        self._intended: dict[CallId, CallIntended] = {}
        self._settled: dict[CallId, CallSettled] = {}
        self._same: dict[tuple[int, str], dict[CallId, int]] = {}
        """The calls of a turn that are one and the same, each with how many came before it."""

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case CallRefused():
                # Out of budget is for now and not for good: once there is more, the call is judged anew.
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
        """Take notice of an outcome whose record is on its way: asked again, the call has been made."""
        self._settled[settled.call] = settled

    def answer(self, call: Call) -> Answer | None:
        """The recorded answer of this call, None where it has none yet. Raises Diverged when it was another call."""
        if refused := self._refused.get(call.id):
            _check_same(call, refused.call, refused.call.digest)
            return Refused(reason=refused.decision.reason, rule=refused.decision.rule)
        if call.id not in self._intended or call.id not in self._settled:
            return None
        intended = self._intended[call.id]
        _check_same(call, intended.call, intended.asked or intended.digest)
        return answer_of(self._settled[call.id])

    def interrupted(self, call: Call) -> CallIntended | None:
        """The intent of a call whose outcome nobody knows, because the process died between the two."""
        intended = self._intended.get(call.id)
        return intended if intended is not None and call.id not in self._settled else None

    def all_interrupted(self) -> tuple[CallIntended, ...]:
        """Every call that was begun and has no outcome."""
        return tuple(intended for call, intended in self._intended.items() if call not in self._settled)

    def count_same_before(self, call: Call, digest: str) -> int:
        """How many calls of its turn with the same operation and arguments were asked for before this one.

        Asking counts: what is under way, or waits for a person, has its place like what is on record.
        """
        positions = self._same.setdefault((call.turn, digest), {})
        return positions.setdefault(call.id, len(positions))


def answer_of(settled: CallSettled) -> Answer:
    """What the guest is told of a settled call."""
    match settled.status:
        case "ok":
            return Returned(value=settled.result, amount=settled.amount)
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
            hint="the code did not run as it did before; start a new turn",
        )
