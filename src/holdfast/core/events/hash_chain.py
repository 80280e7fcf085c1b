"""Recorded events: each in its place, with the hash of the one before, so that a changed, removed or reordered one shows."""

import hashlib
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import methodcaller

import msgspec

from holdfast.core.events.approvals import (
    BudgetRaised,
    BudgetWarned,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    GrantGiven,
    GrantRevoked,
)
from holdfast.core.events.calls import CallIntended, CallRefused, CallSettled
from holdfast.core.events.files import ProposalsCommitted, ProposalsRejected, RestorePointMade, SessionRewound
from holdfast.core.events.session import (
    Noted,
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionPinned,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
)
from holdfast.core.events.teams import (
    MemberAttached,
    MessageQueued,
    MessageSettled,
    NoticeQueued,
    NoticesDelivered,
)
from holdfast.core.events.turn import (
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    RunEnded,
    RunParked,
    RunStarted,
    ToolReturned,
    TurnEnded,
    TurnParked,
    TurnReopened,
)
from holdfast.core.ids import SessionId
from holdfast.core.values import Value, encode

AnyEvent = (
    SessionOpened
    | SessionRenamed
    | SessionPinned
    | SessionReconfigured
    | SessionPaused
    | SessionResumed
    | SessionClosed
    | MessagePosted
    | CodePosted
    | ModelAsked
    | ModelReplied
    | ModelFailed
    | RunStarted
    | RunParked
    | RunEnded
    | ToolReturned
    | TurnEnded
    | TurnParked
    | TurnReopened
    | HistoryCompacted
    | CallRefused
    | CallIntended
    | CallSettled
    | EscalationOpened
    | EscalationAnswered
    | EscalationExpired
    | GrantGiven
    | GrantRevoked
    | BudgetRaised
    | BudgetWarned
    | ProposalsCommitted
    | ProposalsRejected
    | RestorePointMade
    | SessionRewound
    | MemberAttached
    | NoticeQueued
    | NoticesDelivered
    | MessageQueued
    | MessageSettled
    | Noted
)

_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
GENESIS = b"\0" * 32


class RecordedEvent(Value, kw_only=False):
    """An event in its place: `seq` counts from 1, `hash` covers this event and, through `previous`, all before it."""

    session: SessionId
    seq: int
    at_ms: int
    event: AnyEvent
    hash: bytes
    previous: bytes = GENESIS


encode_event: Callable[[AnyEvent], bytes] = encode
"""The bytes of an event as they are stored and hashed."""


def decode_event(body: bytes) -> AnyEvent:
    """The event in these bytes; raises msgspec.MsgspecError on anything else."""
    try:
        return _DECODER.decode(body)
    except UnicodeDecodeError as problem:  # which msgspec lets through where only a text in it is broken
        raise msgspec.DecodeError("a text in the event is not UTF-8") from problem


def decode_events(bodies: Iterable[bytes]) -> list[AnyEvent]:
    """The same for many, in less time."""
    try:
        return list(map(_DECODER.decode, bodies))
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError("a text in an event is not UTF-8") from problem


def event_hash(previous: bytes, session: str, seq: int, at_ms: int, body: bytes) -> bytes:
    """The hash of an event: over the hash before it, its place, its time and its bytes."""
    return hashlib.sha256(_HASHED % (previous, session.encode(), seq, at_ms, body)).digest()


def event_hashes(
    before: Iterable[bytes], session: str, seqs: Iterable[int], times: Iterable[int], bodies: Iterable[bytes]
) -> tuple[bytes, ...]:
    """The same for many events of one session, in less time; `before` has the hash before each."""
    hashed = map(_HASHED.__mod__, zip(before, repeat(session.encode()), seqs, times, bodies, strict=False))
    return tuple(map(_digest, map(hashlib.sha256, hashed)))


_HASHED = b"%b%b\n%d\n%d\n%b"
_digest = methodcaller("digest")
