"""The writer: commits the appends of all sessions of a process in groups, one statement at a time.

Appends that arrive while a statement runs share the next one, so a commit costs one round trip and one flush for any
number of sessions. If an answer is lost, the last event of each session tells whether the statement took effect.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import asyncpg

from holdfast.core import SessionId, encode
from holdfast.core.errors import HoldfastError, LeaseLost, SessionExists, StoreUnavailable
from holdfast.core.events import Noted, RecordedEvent
from holdfast.store.blobs.store import NewBlob
from holdfast.store.coalescing_timer import DEFERRAL_SECONDS, CoalescingTimer
from holdfast.store.entries import Entry, chain_entries
from holdfast.store.history import Head, advance_head, has_rewind
from holdfast.store.names import NAMING_EVENTS, names_in
from holdfast.store.postgres.database import LOST, RETRIED, SQL, close_quickly, connect, explain
from holdfast.store.postgres.rows import read_history
from holdfast.store.summary import is_activity, summarize

MAX_GROUP_SIZE = 512
_APPEND_WITH_BLOBS = SQL["append"].replace("recorded AS (", f"{SQL['stored']}, recorded AS (", 1)
"""Few appends have blobs, and the part for them is a tenth of the statement's cost."""
_PAUSE_SECONDS = 0.2


class JournalEnd(Protocol):
    """What the writer needs of a journal: who it is, where it ends, and a place to put what was written."""

    session: SessionId
    fence: int
    head: Head
    is_uncertain: bool
    """Whether an append failed that may have taken effect."""

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        """All events that are known to be durable."""
        ...

    def adopt(self, head: Head, records: Sequence[RecordedEvent]) -> None:
        """Take over events that are durable now."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Append:
    """One append: its events and blobs, and the future of its caller."""

    journal: JournalEnd
    at_ms: int
    entries: Sequence[Entry]
    blobs: Sequence[NewBlob]
    future: "asyncio.Future[None]"

    @property
    def is_listed_anew(self) -> bool:
        """Whether it may change the name or the folder of the session, or be refused for its name."""
        return any(
            isinstance(entry.event, NAMING_EVENTS)
            or (isinstance(entry.event, Noted) and entry.event.code == "imported")
            for entry in self.entries
        )

    def settle(self, problem: BaseException | None) -> None:
        """Tell the caller, who may be gone."""
        if self.future.done():
            return
        if problem is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(problem)


@dataclass(slots=True, eq=False, kw_only=True)
class _Staged:
    """The appends of one journal in a group, with their records."""

    journal: JournalEnd
    appends: list[Append] = field(default_factory=list)
    records: list[RecordedEvent] = field(default_factory=list)
    head: Head

    @property
    def is_listed_anew(self) -> bool:
        return self.appends[0].is_listed_anew

    def settle(self, problem: BaseException | None) -> None:
        if problem is None:
            self.journal.adopt(self.head, self.records)
        elif not isinstance(problem, HoldfastError) or isinstance(problem, StoreUnavailable):
            self.journal.is_uncertain = True
        for each in self.appends:
            each.settle(problem)


class GroupWriter:
    """Owns the connection for appends of one process."""

    def __init__(
        self,
        url: str,
        *,
        worker: str,
        outage_seconds: float,
        on_commit: Callable[[Sequence[SessionId]], None],
    ) -> None:
        self._url = url
        self._worker = worker
        self._outage_seconds = outage_seconds
        self._on_commit = on_commit
        self._queue: deque[Append] = deque()
        self._task: asyncio.Task[None] | None = None
        self._connection: asyncpg.Connection | None = None
        self._is_closed = False
        self.deferral_timer = CoalescingTimer(DEFERRAL_SECONDS)
        self.statements = 0
        """How many statements were sent, for measurements."""

    def submit(self, append: Append) -> None:
        """Queue an append. Appends of a journal are committed in the order of the calls."""
        if self._is_closed:
            append.settle(StoreUnavailable("the store is closed"))
            return
        self._queue.append(append)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="holdfast-writer")

    async def close(self) -> None:
        """Commit what was submitted, then disconnect. Idempotent."""
        self._is_closed = True
        if self._task is not None:
            await self._task
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await close_quickly(connection)

    async def _run(self) -> None:
        try:
            while self._queue:
                await asyncio.sleep(0)  # sessions that the last commit woke join this group
                await self._write(self._next_group())
        finally:
            self._task = None
            for each in self._queue:  # only if this task was cancelled or has a fault
                each.settle(StoreUnavailable("the store is closed"))
            self._queue.clear()

    def _next_group(self) -> list[Append]:
        """Take the next appends: many together, or one that may be refused for its name."""
        group = [self._queue.popleft()]
        if group[0].is_listed_anew:
            return group
        while self._queue and len(group) < MAX_GROUP_SIZE and not self._queue[0].is_listed_anew:
            group.append(self._queue.popleft())
        return group

    async def _write(self, group: list[Append]) -> None:
        staged: dict[JournalEnd, _Staged] = {}
        try:
            for each in group:
                if each.journal.is_uncertain:
                    await self._find_out(each.journal)
            for each in group:
                entry = staged.get(each.journal) or _Staged(journal=each.journal, head=each.journal.head)
                staged[each.journal] = entry
                _stage(entry, each)
            await self._commit(list(staged.values()))
        except Exception as problem:
            for each in group:
                each.settle(
                    explain(problem, self._url) if not isinstance(problem, HoldfastError) else problem
                )

    async def _find_out(self, journal: JournalEnd) -> None:
        """Read the events of an append that seemed to fail."""
        connection = await self._connected()
        unheard = await read_history(connection, journal.session, after=journal.head.seq)
        journal.is_uncertain = False
        if unheard:
            journal.adopt(_next_head(journal, journal.head, unheard), unheard)

    async def _commit(self, staged: list[_Staged]) -> None:
        """Record the appends of some journals. Afterwards each has its result."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._outage_seconds
        is_retry = False
        while staged:
            try:
                connection = await self._connected()
                if is_retry:
                    staged = await self._unwritten(connection, staged)
                lost = await self._send(connection, staged)
                if is_retry and lost:
                    # The first attempt may have been committed between the question and the second one.
                    lost = await self._unwritten(connection, lost)
            except LOST as problem:
                self._disconnect()
                if loop.time() > deadline:
                    _settle(staged, explain(problem, self._url))
                    return
                is_retry = True
                await asyncio.sleep(_PAUSE_SECONDS)
            except RETRIED:
                await asyncio.sleep(0)
            except Exception as problem:
                if len(staged) == 1:
                    _settle(staged, self._explained(problem))
                    return
                # The failure of one session must not affect the others.
                for each in staged:
                    await self._commit([each])
                return
            else:
                _settle(lost, None, lease_lost=True)
                return

    async def _send(self, connection: asyncpg.Connection, staged: list[_Staged]) -> list[_Staged]:
        """Send one group, settle what was recorded, and return what was not because its lease is lost."""
        if not staged:
            return []
        self.statements += 1
        if staged[0].is_listed_anew:
            async with connection.transaction():
                held = await _record_listed(connection, self._worker, staged[0])
        else:
            held = await _record(connection, self._worker, staged)
        _settle([each for each in staged if each.journal.session in held], None)
        self._on_commit(tuple(held))
        return [each for each in staged if each.journal.session not in held]

    async def _unwritten(self, connection: asyncpg.Connection, staged: list[_Staged]) -> list[_Staged]:
        """After a lost answer: settle the appends that were recorded and return the others."""
        sessions = [each.journal.session for each in staged]
        rows = await connection.fetch(SQL["written"], sessions, [each.head.seq for each in staged])
        found = {row["session"]: row["hash"] for row in rows}
        done = [each for each in staged if each.records and found.get(each.journal.session) == each.head.hash]
        _settle(done, None)
        return [each for each in staged if each not in done]

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None:
            self._connection = await connect(self._url)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def _explained(self, problem: Exception) -> Exception:
        return explain(problem, self._url) if isinstance(problem, asyncpg.PostgresError) else problem


def _settle(staged: Sequence[_Staged], problem: BaseException | None, *, lease_lost: bool = False) -> None:
    for each in staged:
        each.settle(_lease_lost(each.journal.session) if lease_lost else problem)


def _lease_lost(session: SessionId) -> LeaseLost:
    return LeaseLost(
        f"the lease of {session!r} was released or taken over; nothing was written",
        hint="open the session again to continue after the other process's events",
    )


def _stage(staged: _Staged, append: Append) -> None:
    head = staged.head
    records = chain_entries(
        staged.journal.session, append.entries, at_ms=append.at_ms, seq=head.seq, previous=head.hash
    )
    staged.appends.append(append)
    staged.head = _next_head(staged.journal, head, [*staged.records, *records], records)
    staged.records += records


def _next_head(
    journal: JournalEnd,
    head: Head,
    since: Sequence[RecordedEvent],
    records: Sequence[RecordedEvent] | None = None,
) -> Head:
    """Return where a journal ends after `records`, the last ones of those `since` what is durable."""
    records = since if records is None else records
    if not records:
        return head
    if not has_rewind(records):
        return advance_head(head, records)
    state = summarize(journal.session, [*journal.recorded, *since])
    return Head(seq=records[-1].seq, hash=records[-1].hash, state=state)


async def _record(connection: asyncpg.Connection, worker: str, staged: Sequence[_Staged]) -> set[SessionId]:
    """Send the statement; return the sessions that held their lease."""
    events = [
        (record.session, record.seq, record.at_ms, record.hash, entry.body)
        for each in staged
        for record, entry in zip(
            each.records, (entry for append in each.appends for entry in append.entries), strict=True
        )
    ]
    blobs = [
        (each.journal.session, bytes.fromhex(blob.digest), len(blob.content), blob.content, append.at_ms)
        for each in staged
        for append in each.appends
        for blob in append.blobs
    ]
    rows = await connection.fetch(
        _APPEND_WITH_BLOBS if blobs else SQL["append"],
        worker,
        [each.journal.session for each in staged],
        [each.journal.fence for each in staged],
        [each.journal.head.seq for each in staged],
        [each.head.seq for each in staged],
        [each.head.hash for each in staged],
        [encode(each.head.state) for each in staged],
        [any(map(is_activity, each.records)) for each in staged],
        [each.head.state.summary.activity for each in staged],
        *(list(column) for column in (zip(*events, strict=True) if events else ((),) * 5)),
        *(list(column) for column in zip(*blobs, strict=True)),
    )
    return {SessionId(row[0]) for row in rows}


async def _record_listed(connection: asyncpg.Connection, worker: str, staged: _Staged) -> set[SessionId]:
    """Record an append that may name its session, in a transaction."""
    session = staged.journal.session
    names = names_in(record.event for record in staged.records)
    await check_names(connection, session, names)
    held = await _record(connection, worker, [staged])
    if held:
        line = staged.head.state.summary
        try:
            await connection.execute(SQL["list_again"], session, line.name, line.folder)
        except asyncpg.UniqueViolationError as problem:
            raise _name_taken(line.name) from problem
    return held


async def check_names(connection: asyncpg.Connection, session: SessionId, names: Sequence[str]) -> None:
    """Refuse a name that is the name or id of another session. Holds the names until the transaction ends."""
    if names:
        await connection.execute(SQL["lock_names"], names)
    for name in names:
        if await connection.fetchval(SQL["name_taken"], session, name):
            raise _name_taken(name)


def _name_taken(name: str | None) -> SessionExists:
    return SessionExists(f"another session has the name {name!r}", hint="choose another name")
