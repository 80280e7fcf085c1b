"""The audit view: one line for each call, with what was asked, judged, decided by whom, and what came of it."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from holdfast.core import CallId, Decision, EscalationId, JsonObject, Principal, Response, Value
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    Recorded,
)
from holdfast.core.fold import effective

Result = Literal["ok", "refused", "error", "timeout", "cancelled", "unknown", "waiting", "begun"]
"""What became of a call; `waiting` and `begun` are not over yet."""


class AuditEntry(Value):
    """One call on the record."""

    call: CallId
    turn: int
    at_ms: int
    operation: str
    arguments: JsonObject
    decision: Decision
    result: Result
    error: str = ""
    escalation: EscalationId | None = None
    response: Response | None = None
    approver: Principal | None = None
    transport: str = ""
    tokens: int = 0
    duration_ms: float = 0.0


def audit_view(
    recorded: Iterable[Recorded], *, turn: int | None = None, operation: str | None = None
) -> list[AuditEntry]:
    """Every call of a journal in the order it was first asked for, refusals included."""
    entries: dict[CallId, AuditEntry] = {}
    call_of: dict[EscalationId, CallId] = {}
    for entry in effective(recorded):
        match event := entry.event:
            case EscalationOpened():
                asked = event.escalation
                call_of[asked.id] = asked.call.id
                entries[asked.call.id] = AuditEntry(
                    call=asked.call.id,
                    turn=asked.call.turn,
                    at_ms=entry.at_ms,
                    operation=asked.call.operation,
                    arguments=asked.call.arguments,
                    decision=asked.decision,
                    result="waiting",
                    escalation=asked.id,
                )
            case EscalationAnswered() if event.escalation in call_of:
                call = call_of[event.escalation]
                entries[call] = _with(
                    entries[call],
                    response=event.response,
                    approver=event.principal,
                    transport=event.transport,
                )
            case EscalationExpired() if event.escalation in call_of:
                call = call_of[event.escalation]
                entries[call] = _with(entries[call], error=event.reason)
            case CallRefused() | CallIntended():
                result: Result = "refused" if isinstance(event, CallRefused) else "begun"
                fresh = AuditEntry(
                    call=event.call.id,
                    turn=event.call.turn,
                    at_ms=entry.at_ms,
                    operation=event.call.operation,
                    arguments=event.call.arguments,
                    decision=event.decision,
                    result=result,
                )
                earlier = entries.get(event.call.id)
                entries[event.call.id] = (
                    _with(earlier, result=result, decision=event.decision, arguments=event.call.arguments)
                    if earlier
                    else fresh
                )
            case CallSettled() if event.call in entries:
                entries[event.call] = _with(
                    entries[event.call],
                    result=event.status,
                    error=event.error,
                    tokens=event.amount.tokens,
                    duration_ms=event.duration_ms,
                )
            case _:
                pass
    return [
        entry
        for entry in entries.values()
        if (turn is None or entry.turn == turn) and (operation is None or entry.operation == operation)
    ]


def _with(entry: AuditEntry, **changes: object) -> AuditEntry:
    return msgspec.structs.replace(entry, **changes)
