"""Sessions in the SQLite store: creating one atomically, loading its journal, listing and finding sessions."""

from collections.abc import Sequence

from holdfast.core import SessionId, Value, encode, is_short_id
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.events import GENESIS, RecordedEvent, SessionOpened
from holdfast.store.contract import Redact, SessionSummary
from holdfast.store.entries import chain_entries, encode_entry
from holdfast.store.history import Head, damaged, decode_summary_state, parent_columns
from holdfast.store.names import IdTaken, possible_names, require_single_match
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.journal import check_names, next_head
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.rows import (
    Connection,
    read_history,
    read_summary_state,
    require_listed,
    require_session,
)
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import empty_summary, summarize


class CreatedSession(Value):
    """A new session: the number of its lease, the end of its journal, and its events."""

    fence: int
    head: Head
    history: list[RecordedEvent]


class CreateSession:
    """A writer job that creates a session, empty or with the history of another one: its first event, index row and lease."""

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
            state=summarize(session, history) if history else empty_summary(session),
        )
        start = self._start
        (self._first,) = chain_entries(
            session, [self._entry], at_ms=at_ms, seq=start.seq, previous=start.hash
        )
        self._was_attempted = False

    def __call__(self, transaction: Transaction) -> CreatedSession:
        """Run the job. Raises IdTaken, SessionExists if the name is taken, SessionNotFound if the parent is gone."""
        if self._parent is not None:
            require_session(transaction, self._parent.session)
        if transaction.execute(SQL["is_taken"], (self._session,)).fetchone():
            if not (self._was_attempted and self._is_own(transaction)):
                raise IdTaken(f"there is already a session {self._session!r}", hint="choose another id")
            head = next_head(transaction, self._session, self._start, [self._first])
        else:
            check_names(transaction, self._session, [self._first])
            self._was_attempted = True
            head = self._write(transaction)
        fence = self._leases.grant(transaction, self._session)
        return CreatedSession(fence=fence, head=head, history=[*self._history, self._first])

    def _write(self, transaction: Transaction) -> Head:
        first = self._first
        row = (self._session, first.seq, first.at_ms, first.hash, self._entry.body)
        rank = transaction.execute(SQL["append_event"], row).lastrowid
        head = next_head(transaction, self._session, self._start, [self._first])
        line = head.state.summary
        place = (self._session, line.name, line.folder, rank, *parent_columns(line.parent))
        transaction.execute(SQL["insert_session"], (*place, encode(head.state)))
        return head

    def _is_own(self, transaction: Transaction) -> bool:
        """Whether this job itself created the session, in a commit that only seemed to fail."""
        written = transaction.execute(SQL["event_hash"], (self._session, self._first.seq)).fetchone()
        return written == (self._first.hash,) and self._leases.holder(transaction, self._session) is None


def load(connection: Connection, session: SessionId) -> tuple[Head, list[RecordedEvent]]:
    """Load a whole journal and its end. Raises SessionNotFound, JournalDamaged."""
    history = read_history(connection, session)
    state = read_summary_state(connection, session)
    if state.summary.events != len(history):
        raise damaged(session, len(history) + 1)
    return Head(seq=history[-1].seq, hash=history[-1].hash, state=state), history


def load_upto(connection: Connection, session: SessionId, at: int) -> list[RecordedEvent]:
    """Load a journal up to and including one event. Raises InvalidInput if there is no such event."""
    events = read_summary_state(connection, session).summary.events
    if not 1 <= at <= events:
        raise InvalidInput(f"{session!r} has events 1 to {events}, but no event {at}")
    return read_history(connection, session, upto=at)


def load_after(connection: Connection, session: SessionId, after: int) -> list[RecordedEvent]:
    """Load the events of a journal after one event. Raises SessionNotFound, JournalDamaged."""
    after = max(after, 0)
    events = read_summary_state(
        connection, session
    ).summary.events  # a deleted parent has rows, but is not a session
    history = read_history(connection, session, after=after)
    if after + len(history) < events:
        raise damaged(session, after + len(history) + 1)
    return history


def list_sessions(connection: Connection, *, limit: int | None, folder: str | None) -> list[SessionSummary]:
    """List sessions by activity, newest first."""
    rows = -1 if limit is None else max(limit, 0)
    if folder is None:
        found = connection.execute(SQL["list_sessions"], (rows,))
    else:
        found = connection.execute(SQL["list_folder"], (folder, rows))
    return [decode_summary_state(body, id).summary for id, body in found]


def find(connection: Connection, reference: str) -> SessionId:
    """Find a session by id, name, unique prefix or short id."""
    if connection.execute(SQL["find_session"], (reference,)).fetchone():
        return SessionId(reference)
    for name in possible_names(reference):
        row = connection.execute(SQL["session_named"], (name,)).fetchone()
        if row is not None:
            return SessionId(row[0])
    require_listed(connection, reference)
    rows = connection.execute(SQL["sessions_beginning"], (reference, reference + "\U0010ffff"))
    matches = [SessionId(id) for (id,) in rows]
    if not matches and is_short_id(reference):
        matches = [SessionId(id) for (id,) in connection.execute(SQL["sessions_ending"], (reference,))]
    if not matches:
        _raise_if_removed(connection, reference)
    return require_single_match(reference, matches)


def _raise_if_removed(connection: Connection, reference: str) -> None:
    """Raise SessionNotFound with the reason if the session was deleted or pruned."""
    for name in possible_names(reference):
        row = connection.execute(SQL["removal_of"], (name,)).fetchone()
        if row is not None:
            session, reason, day = row
            raise SessionNotFound(
                f"{session!r} was {reason}{day}",
                hint="if you have an export, restore it with: holdfast import FILE",
            )
