"""Rows of events and summaries as every durable store reads them: decoding, checking, and the end of a journal. No I/O."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.errors import JournalDamaged, SessionNotFound, VersionTooOld
from holdfast.core.events import (
    Parent,
    RecordedEvent,
    SessionRewound,
    decode_events,
    event_hashes,
    is_of_newer_version,
)
from holdfast.store.entries import Entry
from holdfast.store.summary import SummaryState, advance_summary

_SUMMARY_DECODER: msgspec.json.Decoder[SummaryState] = msgspec.json.Decoder(SummaryState)


class Head(Value):
    """The end of a journal, as its writer knows it."""

    seq: int
    hash: bytes
    state: SummaryState


def has_rewind(records: Sequence[RecordedEvent] | Sequence[Entry]) -> bool:
    """Whether the summary must be computed from the whole journal after these."""
    return SessionRewound in [type(record.event) for record in records]


def advance_head(head: Head, records: Sequence[RecordedEvent]) -> Head:
    """Return where the journal ends after these records, none of which is a rewind."""
    return Head(seq=records[-1].seq, hash=records[-1].hash, state=advance_summary(head.state, records))


def decode_rows(
    session: SessionId, writer: SessionId, after: int, previous: bytes, rows: Sequence[Any]
) -> list[RecordedEvent]:
    """Decode and check rows. All at once, because one by one takes a quarter longer."""
    seqs, times, links, bodies = zip(*rows, strict=True)
    places, before = tuple(range(after + 1, after + 1 + len(rows))), (previous, *links[:-1])
    is_typed = set(map(type, times)) == {int}  # the hash covers whole milliseconds and would hide a fraction
    try:
        if seqs == places and is_typed and event_hashes(before, writer, places, times, bodies) == links:
            return list(
                map(RecordedEvent, repeat(writer), places, times, decode_events(bodies), links, before)
            )
        problem = None
    except (msgspec.MsgspecError, TypeError) as error:  # columns of a damaged row can have any type
        problem = error
    if len(rows) == 1 and isinstance(problem, msgspec.MsgspecError) and is_of_newer_version(bodies[0]):
        raise VersionTooOld(
            f"event {after + 1} of session {session!r} was written by a newer version of Holdfast",
            hint="upgrade Holdfast on this machine",
        )
    if len(rows) == 1:
        raise damaged(session, after + 1) from problem
    return [  # find the damaged one
        one
        for place, link, row in zip(places, before, rows, strict=True)
        for one in decode_rows(session, writer, place - 1, link, [row])
    ]


def decode_summary_state(body: object, session: str) -> SummaryState:
    """Decode a stored summary. Raises msgspec.MsgspecError."""
    if not isinstance(body, bytes | str):
        raise msgspec.DecodeError("a summary must be JSON")
    try:
        state = _SUMMARY_DECODER.decode(body)
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError("a summary must be UTF-8") from problem
    if state.summary.id != session:
        raise msgspec.DecodeError("a summary belongs to another session")
    return state


def parent_columns(parent: Parent | None) -> tuple[SessionId | None, int | None]:
    """The columns of a parent."""
    return (parent.session, parent.seq) if parent else (None, None)


def not_found(session: SessionId) -> SessionNotFound:
    """Create the error for a missing session."""
    return SessionNotFound(f"there is no session {session!r}", hint="`holdfast sessions` lists all sessions")


def damaged(session: SessionId, seq: int) -> JournalDamaged:
    """Create the error for a damaged journal."""
    return JournalDamaged(
        f"event {seq} of session {session!r} is missing or was changed",
        hint=f"`holdfast verify {session}` shows the damage, `holdfast export {session}` saves what can be read",
    )


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector."""
    # Thousands of new objects that stay alive trigger the garbage collector again and again, which would take half
    # the time of a load.
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
