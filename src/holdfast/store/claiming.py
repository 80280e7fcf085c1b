"""Claiming: how an id becomes a session, with its first event, its line in the list and its lease; once, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core import SessionId, encode
from holdfast.core.errors import SessionExists
from holdfast.core.events import GENESIS, Recorded, SessionOpened
from holdfast.store.database import SQL
from holdfast.store.fold import begin, fold
from holdfast.store.journal import check_names, next_head
from holdfast.store.leases import Leases
from holdfast.store.pen import Transaction
from holdfast.store.records import Redact, chained, encode_entry
from holdfast.store.rows import Head, columns_of, require_session


class IdTaken(SessionExists):
    """The id is claimed; of a generated one, another is generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A session that is there from now on: the number of its lease, where its journal ends, and all that is in it."""

    fence: int
    head: Head
    history: list[Recorded]


class Claim:
    """One attempt to begin a session, with nothing or with another's history. A job of the writer."""

    def __init__(
        self,
        session: SessionId,
        opened: SessionOpened,
        *,
        history: Sequence[Recorded],
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
            tally=fold(session, history) if history else begin(session),
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
