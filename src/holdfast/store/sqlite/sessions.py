"""Claiming: how an id becomes a session, with its first event, its line in the list and its lease; once, or not at all.

Looking things up: a session by what a person calls it, its line, its journal. Reads only; runs in the reader's thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core import SessionId, encode
from holdfast.core.errors import InvalidInput, SessionExists, SessionNotFound
from holdfast.core.events import GENESIS, RecordedEvent, SessionOpened
from holdfast.store.contract import SessionSummary
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.journal import check_names, next_head
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.names import possible_names, the_only
from holdfast.store.sqlite.rows import (
    Connection,
    Head,
    Redact,
    chained,
    columns_of,
    damaged,
    decode_tally,
    encode_entry,
    read_history,
    read_tally,
    require_listed,
    require_session,
)
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import empty_summary, summarize


class IdTaken(SessionExists):
    """The id is claimed; of a generated one, another is generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A session that is there from now on: the number of its lease, where its journal ends, and all that is in it."""

    fence: int
    head: Head
    history: list[RecordedEvent]


class CreateSession:
    """One attempt to begin a session, with nothing or with another's history. A job of the writer."""

    def __init__(
        self,
        session: SessionId,
        opened: SessionOpened,
        *,
        history: Sequence[RecordedEvent],
        at_ms: int,
        leases: Leases,
        redact: Redact,
    ) -> None:
        self._session = session
        self._parent = opened.parent
        self._history = history
        self._leases = leases
        self._entry = encode_entry(opened, redact)
        self._start = Head(
            seq=history[-1].seq if history else 0,
            hash=history[-1].hash if history else GENESIS,
            tally=summarize(session, history) if history else empty_summary(session),
        )
        start = self._start
        (self._first,) = chained(session, [self._entry], at_ms=at_ms, seq=start.seq, previous=start.hash)
        self._has_tried = False

    def __call__(self, transaction: Transaction) -> Claimed:
        """Do it. Raises IdTaken, SessionExists for a name that is taken, SessionNotFound where the parent is gone."""
        if self._parent is not None:
            require_session(transaction, self._parent.session)
        if transaction.execute(SQL["is_taken"], (self._session,)).fetchone():
            if not (self._has_tried and self._is_own(transaction)):
                raise IdTaken(f"there is a session {self._session!r} already", hint="choose another id")
            head = next_head(transaction, self._session, self._start, [self._first])
        else:
            check_names(transaction, self._session, [self._first])
            self._has_tried = True
            head = self._write(transaction)
        fence = self._leases.grant(transaction, self._session)
        return Claimed(fence=fence, head=head, history=[*self._history, self._first])

    def _write(self, transaction: Transaction) -> Head:
        first = self._first
        row = (self._session, first.seq, first.at_ms, first.hash, self._entry.body)
        rank = transaction.execute(SQL["append_event"], row).lastrowid
        head = next_head(transaction, self._session, self._start, [self._first])
        line = head.tally.summary
        place = (self._session, line.name, line.folder, rank, *columns_of(line.parent))
        transaction.execute(SQL["claim_session"], (*place, encode(head.tally)))
        return head

    def _is_own(self, transaction: Transaction) -> bool:
        """Whether an id is taken by this very claim, whose first commit only seemed to fail."""
        written = transaction.execute(SQL["event_hash"], (self._session, self._first.seq)).fetchone()
        return written == (self._first.hash,) and self._leases.holder(transaction, self._session) is None


def load(connection: Connection, session: SessionId) -> tuple[Head, list[RecordedEvent]]:
    """A whole journal and where it ends. Raises SessionNotFound, JournalDamaged."""
    history = read_history(connection, session)
    tally = read_tally(connection, session)
    if tally.summary.events != len(history):
        raise damaged(session, len(history) + 1)
    return Head(seq=history[-1].seq, hash=history[-1].hash, tally=tally), history


def load_upto(connection: Connection, session: SessionId, at: int) -> list[RecordedEvent]:
    """A journal up to and with one event. Raises InvalidInput where that is none of its events."""
    events = read_tally(connection, session).summary.events
    if not 1 <= at <= events:
        raise InvalidInput(f"{session!r} has the events 1 to {events}, {at} is not one of them")
    return read_history(connection, session, upto=at)


def load_after(connection: Connection, session: SessionId, after: int) -> list[RecordedEvent]:
    """What a journal holds behind one event. Raises SessionNotFound, JournalDamaged."""
    after = max(after, 0)
    events = read_tally(connection, session).summary.events  # a deleted parent has rows, but is no session
    history = read_history(connection, session, after=after)
    if after + len(history) < events:
        raise damaged(session, after + len(history) + 1)
    return history


def list_sessions(connection: Connection, *, limit: int | None, folder: str | None) -> list[SessionSummary]:
    """The list of sessions, newest activity first."""
    rows = -1 if limit is None else max(limit, 0)
    if folder is None:
        found = connection.execute(SQL["list_sessions"], (rows,))
    else:
        found = connection.execute(SQL["list_folder"], (folder, rows))
    return [decode_tally(body, id).summary for id, body in found]


def find(connection: Connection, reference: str) -> SessionId:
    """The session with this id, this name or, if only one fits, this prefix."""
    if connection.execute(SQL["find_session"], (reference,)).fetchone():
        return SessionId(reference)
    for name in possible_names(reference):
        row = connection.execute(SQL["session_named"], (name,)).fetchone()
        if row is not None:
            return SessionId(row[0])
    require_listed(connection, reference)
    rows = connection.execute(SQL["sessions_beginning"], (reference, reference + "\U0010ffff"))
    fitting = [SessionId(id) for (id,) in rows]
    if not fitting:
        _tell_removed(connection, reference)
    return the_only(reference, fitting)


def _tell_removed(connection: Connection, reference: str) -> None:
    """Raises SessionNotFound where the session is not there because somebody removed it."""
    for name in possible_names(reference):
        row = connection.execute(SQL["removal_of"], (name,)).fetchone()
        if row is not None:
            session, reason, day = row
            raise SessionNotFound(
                f"{session!r} was {reason}{day}",
                hint="where there is an export of it, holdfast import FILE brings it back",
            )
