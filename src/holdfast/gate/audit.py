"""The audit view: one line for each call, with what was asked, judged, decided by whom, and what came of it.

audit.jsonl: the audit view as a file that a person can tail. Derived from the journal, never the other way round.
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
    TurnEnded,
)
from holdfast.core.projection import without_rewound
from holdfast.store import Journal, read_plain, remove, replace_private

Result = Literal["ok", "refused", "error", "timeout", "cancelled", "unknown", "waiting", "begun"]
"""What became of a call; `waiting` and `begun` are not over yet."""


class AuditEntry(Value, omit_defaults=False):
    """One call on the record; every field is written, so that a reader finds the same ones in each line."""

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
    """The standing yes that let it pass, where nobody was asked."""
    approver: Principal | None = None
    """Who said yes or no, or gave the grant; None where nobody did, or the grant was given in another session."""
    transport: str = ""
    """How the answer came; `grant` for a standing one."""
    tokens: int = 0
    duration_ms: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be said of this call."""
        return self.result not in ("waiting", "begun")


class AuditStats(Value, rename="camel"):
    """How much happened: calls in all, by operation and by result, and the tokens of models and tools."""

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
        self._givers: dict[GrantId, Principal] = {}

    def take(self, entry: RecordedEvent) -> tuple[AuditEntry, ...]:
        """Take in one event; the calls it ended."""
        match event := entry.event:
            case EscalationOpened():
                asked = event.escalation
                self._call_of[asked.id] = asked.call.id
                self._put(
                    AuditEntry(
                        call=asked.call.id,
                        turn=asked.call.turn,
                        at_ms=entry.at_ms,
                        operation=asked.call.operation,
                        arguments=asked.call.arguments,
                        decision=asked.decision,
                        result="waiting",
                        escalation=asked.id,
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
                self._givers[event.grant.id] = event.grant.given_by
            case CallRefused() | CallIntended():
                return self._judged(entry.at_ms, event)
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
                return self._left_open(event.turn)
            case ModelReplied() | ModelFailed() | HistoryCompacted():
                self.model_tokens += event.usage.input_tokens + event.usage.output_tokens
            case _:
                pass
        return ()

    def forget(self, after: int) -> None:
        """Drop the calls of turns that were taken back: their numbers will be given to others."""
        self.entries = {id: entry for id, entry in self.entries.items() if entry.turn <= after}

    def stats(self) -> AuditStats:
        """How many operations, which, how they ended, and their tokens."""
        entries = self.entries.values()
        return AuditStats(
            total_operations=len(entries),
            operation_counts=dict(Counter(entry.operation for entry in entries)),
            result_counts=dict(Counter(entry.result for entry in entries)),
            total_tokens=self.model_tokens + sum(entry.tokens for entry in entries),
        )

    def _left_open(self, turn: int) -> tuple[AuditEntry, ...]:
        """What a turn left behind: calls cut off in the middle, and calls that nobody will be asked about any more."""
        ended: dict[Result, Result] = {"begun": "unknown", "waiting": "cancelled"}
        left = [each for each in self.entries.values() if each.turn == turn and not each.is_over]
        return tuple(self._change(each.call, result=ended[each.result]) for each in left)

    def _judged(self, at_ms: int, event: CallRefused | CallIntended) -> tuple[AuditEntry, ...]:
        call, decision = event.call, event.decision
        result: Result = "refused" if isinstance(event, CallRefused) else "begun"
        if call.id in self.entries:
            made = self._change(call.id, result=result, decision=decision, arguments=call.arguments)
        else:
            made = self._put(
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
            giver = self._givers.get(event.grant)
            made = self._change(call.id, grant=event.grant, approver=giver, transport="grant")
        return (made,) if made.is_over else ()

    def _put(self, entry: AuditEntry) -> AuditEntry:
        self.entries[entry.call] = entry
        return entry

    def _change(self, call: CallId, **changes: object) -> AuditEntry:
        return self._put(msgspec.structs.replace(self.entries[call], **changes))


def audit_view(
    recorded: Iterable[RecordedEvent], *, turn: int | None = None, operation: str | None = None
) -> list[AuditEntry]:
    """Every call of a journal in the order it was first asked for, refusals included."""
    return [
        entry
        for entry in _trail(recorded).entries.values()
        if (turn is None or entry.turn == turn) and (operation is None or entry.operation == operation)
    ]


def audit_stats(recorded: Iterable[RecordedEvent]) -> AuditStats:
    """How much happened in a journal."""
    return _trail(recorded).stats()


def _trail(recorded: Iterable[RecordedEvent]) -> AuditTrail:
    trail = AuditTrail()
    for entry in without_rewound(recorded):
        trail.take(entry)
    return trail


class AuditFile:
    """Writes a line for each call that is over, after it is durable; a missing or damaged file is made anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trail = AuditTrail()
        self._lines: list[bytes] | None = []
        """Lines of the past while the journal is read; None once it is followed live."""

    def attach(self, journal: Journal) -> bool:
        """Bring the file up to the journal and follow it from here. True where it had to be made anew."""
        journal.follow(self)
        lines, self._lines = self._lines or [], None
        wanted = b"".join(lines)
        present = self._present(len(wanted))
        if present is not None and wanted.startswith(present):
            self._append(wanted[len(present) :])
            return False
        if self._path.is_dir() and not self._path.is_symlink():
            remove(self._path)  # all else is replaced in one step
        replace_private(self._path, wanted)
        return True

    def _present(self, longest: int) -> bytes | None:
        """What the file holds; None where it is longer than it should be, or no plain file of ours."""
        try:
            return read_plain(self._path, max_bytes=longest)
        except FileNotFoundError:
            return b""
        except OSError:
            return None

    def __call__(self, entry: RecordedEvent) -> None:
        """Take in one event. Trouble with the file is no trouble of the session: the journal has it all."""
        if isinstance(entry.event, SessionRewound):
            # What was taken back still happened, and its lines stay in the file.
            self._trail.forget(entry.event.turn)
            return
        lines = [_line(over) for over in self._trail.take(entry)]
        if self._lines is not None:
            self._lines += lines
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
