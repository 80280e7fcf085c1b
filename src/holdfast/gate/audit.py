"""The audit log: one entry per call, with what was asked, what was decided by whom, and how it ended.

`audit_view` derives the entries from the journal. `AuditFile` writes the same entries to audit.jsonl, which a person can
tail; the journal is never derived from it.
"""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.core import (
    CallId,
    Decision,
    EscalationId,
    GrantId,
    JsonObject,
    Principal,
    Response,
    Value,
    encode,
)
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    GrantGiven,
    HistoryCompacted,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    SessionRewound,
    SessionTitled,
    TurnEnded,
)
from holdfast.core.projection import without_rewound
from holdfast.store import Journal, read_plain, remove, replace_private

Result = Literal["ok", "refused", "error", "timeout", "cancelled", "unknown", "waiting", "begun"]
"""How a call ended; `waiting` and `begun` are not over yet."""


class AuditEntry(Value, omit_defaults=False):
    """One call of the journal. Every field is written, so that each line has the same fields."""

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
    grant: GrantId | None = None
    """The grant that allowed it, if no one was asked."""
    approver: Principal | None = None
    """Who approved or denied it, or gave the grant; None if no one did, or the grant is from another session."""
    transport: str = ""
    """The transport of the answer; `grant` for a saved approval."""
    tokens: int = 0
    duration_ms: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return self.result not in ("waiting", "begun")


class AuditStats(Value, rename="camel"):
    """Totals: calls by operation and by result, and the tokens of models and tools."""

    total_operations: int
    operation_counts: dict[str, int]
    result_counts: dict[str, int]
    total_tokens: int


class AuditTrail:
    """Builds audit entries event by event."""

    def __init__(self) -> None:
        self.entries: dict[CallId, AuditEntry] = {}
        self.model_tokens = 0
        self._call_of: dict[EscalationId, CallId] = {}
        self._granted_by: dict[GrantId, Principal] = {}

    def add_event(self, entry: RecordedEvent) -> tuple[AuditEntry, ...]:
        """Add one event and return the calls that it ended."""
        match event := entry.event:
            case EscalationOpened():
                opened = event.escalation
                self._call_of[opened.id] = opened.call.id
                self._put(
                    AuditEntry(
                        call=opened.call.id,
                        turn=opened.call.turn,
                        at_ms=entry.at_ms,
                        operation=opened.call.operation,
                        arguments=opened.call.arguments,
                        decision=opened.decision,
                        result="waiting",
                        escalation=opened.id,
                    )
                )
            case EscalationAnswered() if event.escalation in self._call_of:
                self._change(
                    self._call_of[event.escalation],
                    response=event.response,
                    approver=event.principal,
                    transport=event.transport,
                )
            case EscalationExpired() if event.escalation in self._call_of:
                self._change(self._call_of[event.escalation], error=event.reason)
            case GrantGiven():
                self._granted_by[event.grant.id] = event.grant.given_by
            case CallRefused() | CallIntended():
                return self._record_decision(entry.at_ms, event)
            case CallSettled() if event.call in self.entries:
                settled = self._change(
                    event.call,
                    result=event.status,
                    error=event.error,
                    tokens=event.amount.tokens,
                    duration_ms=event.duration_ms,
                )
                return (settled,)
            case TurnEnded():
                return self._close_turn(event.turn)
            case ModelReplied() | ModelFailed() | HistoryCompacted() | SessionTitled():
                self.model_tokens += event.usage.input_tokens + event.usage.output_tokens
            case _:
                pass
        return ()

    def drop_turns_after(self, after: int) -> None:
        """Drop the calls of turns that were rewound: their numbers will be used again."""
        self.entries = {id: entry for id, entry in self.entries.items() if entry.turn <= after}

    def stats(self) -> AuditStats:
        """Number of operations, by operation and by result, and their tokens."""
        entries = self.entries.values()
        return AuditStats(
            total_operations=len(entries),
            operation_counts=dict(Counter(entry.operation for entry in entries)),
            result_counts=dict(Counter(entry.result for entry in entries)),
            total_tokens=self.model_tokens + sum(entry.tokens for entry in entries),
        )

    def _close_turn(self, turn: int) -> tuple[AuditEntry, ...]:
        """End the calls that a turn left open: interrupted ones become unknown, waiting ones cancelled."""
        ended: dict[Result, Result] = {"begun": "unknown", "waiting": "cancelled"}
        left = [each for each in self.entries.values() if each.turn == turn and not each.is_over]
        return tuple(self._change(each.call, result=ended[each.result]) for each in left)

    def _record_decision(self, at_ms: int, event: CallRefused | CallIntended) -> tuple[AuditEntry, ...]:
        call, decision = event.call, event.decision
        result: Result = "refused" if isinstance(event, CallRefused) else "begun"
        if call.id in self.entries:
            changed = self._change(call.id, result=result, decision=decision, arguments=call.arguments)
        else:
            changed = self._put(
                AuditEntry(
                    call=call.id,
                    turn=call.turn,
                    at_ms=at_ms,
                    operation=call.operation,
                    arguments=call.arguments,
                    decision=decision,
                    result=result,
                )
            )
        if isinstance(event, CallIntended) and event.grant is not None:
            granted_by = self._granted_by.get(event.grant)
            changed = self._change(call.id, grant=event.grant, approver=granted_by, transport="grant")
        return (changed,) if changed.is_over else ()

    def _put(self, entry: AuditEntry) -> AuditEntry:
        self.entries[entry.call] = entry
        return entry

    def _change(self, call: CallId, **changes: object) -> AuditEntry:
        return self._put(msgspec.structs.replace(self.entries[call], **changes))


def audit_view(
    recorded: Iterable[RecordedEvent], *, turn: int | None = None, operation: str | None = None
) -> list[AuditEntry]:
    """Every call of a journal in the order it was first submitted, refusals included."""
    return [
        entry
        for entry in _trail(recorded).entries.values()
        if (turn is None or entry.turn == turn) and (operation is None or entry.operation == operation)
    ]


def audit_stats(recorded: Iterable[RecordedEvent]) -> AuditStats:
    """Totals of a journal."""
    return _trail(recorded).stats()


def _trail(recorded: Iterable[RecordedEvent]) -> AuditTrail:
    trail = AuditTrail()
    for entry in without_rewound(recorded):
        trail.add_event(entry)
    return trail


class AuditFile:
    """Writes one line per ended call once it is durable. Rebuilds a missing or damaged file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trail = AuditTrail()
        self._pending_lines: list[bytes] | None = []
        """Lines collected while the journal is read; None once it is followed live."""

    def attach(self, journal: Journal) -> bool:
        """Bring the file up to date with the journal and follow it. True if the file had to be rebuilt."""
        journal.follow(self)
        lines, self._pending_lines = self._pending_lines or [], None
        expected = b"".join(lines)
        current = self._current_content(len(expected))
        if current is not None and expected.startswith(current):
            self._append(expected[len(current) :])
            return False
        if self._path.is_dir() and not self._path.is_symlink():
            remove(self._path)  # anything else is replaced in one step
        replace_private(self._path, expected)
        return True

    def _current_content(self, max_bytes: int) -> bytes | None:
        """The content of the file; None if it is longer than expected or not a plain file of ours."""
        try:
            return read_plain(self._path, max_bytes=max_bytes)
        except FileNotFoundError:
            return b""
        except OSError:
            return None

    def __call__(self, entry: RecordedEvent) -> None:
        """Add one event. A write error is ignored: the journal has everything."""
        if isinstance(entry.event, SessionRewound):
            # Rewound calls still happened, and their lines stay in the file.
            self._trail.drop_turns_after(entry.event.turn)
            return
        lines = [_line(finished) for finished in self._trail.add_event(entry)]
        if self._pending_lines is not None:
            self._pending_lines += lines
        elif lines:
            with suppress(OSError):
                self._append(b"".join(lines))

    def _append(self, content: bytes) -> None:
        if not content:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def _line(entry: AuditEntry) -> bytes:
    return encode(entry) + b"\n"
