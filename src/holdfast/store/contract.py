"""The contract of a store: journals, the blobs that their events refer to, and everything derived from the journals.

A journal has one writer at a time. A lease proves who that is, and every append carries the lease's fencing number;
reading needs no lease. An append is durable when it returns, and events are committed in the order of the calls, awaited
or not. The session list, the search and the summaries are derived from the journals and can be rebuilt.

`sqlite/` is the store on disk and `memory` the one for tests and throw-away runs; `open_store` chooses the backend.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Literal, Protocol, cast, runtime_checkable

from holdfast.core import Amount, Escalation, Limits, SessionId, Value
from holdfast.core.events import FORMAT, Event, Parent, RecordedEvent, RestorePointMade, SessionOpened, Signer
from holdfast.store.derived.usage import UsageTotal

Follower = Callable[[RecordedEvent], None]
"""Called with every recorded event, in order, once the event is durable. It must not raise and must not block."""

Redact = Callable[[bytes], bytes]
"""Removes known secrets from the bytes of an event."""


class LeaseHolder(Value):
    """The process that holds a session's lease."""

    pid: int
    host: str
    since_ms: int


class SessionSummary(Value):
    """One row of the session list, derived from the session's journal."""

    id: SessionId
    name: str | None = None
    description: str = ""
    folder: str = ""
    workspace: str = ""
    model: str = ""
    policy: str = ""
    queue: str = ""
    created_ms: int = 0
    active_ms: int = 0
    turns: int = 0
    messages: int = 0
    first_words: str = ""
    title: str = ""
    """What a model called the session, from its first exchange; empty if none was asked."""
    tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    lifecycle: Literal["open", "paused", "completed", "aborted", "failed"] = "open"
    activity: Literal["ready", "processing", "waiting"] = "ready"
    waiting_since_ms: int | None = None
    is_pinned: bool = False
    is_damaged: bool = False
    parent: Parent | None = None
    events: int = 0


class SessionPage(Value):
    """Some rows of the session list, and where the next page begins."""

    sessions: tuple[SessionSummary, ...] = ()
    next: str | None = None
    """Pass it as `before`; None if these are the last ones."""


class WaitingEscalation(Value):
    """An escalation that is neither answered nor expired, of the session that waits for it."""

    session: SessionId
    name: str | None
    escalation: Escalation
    title: str = ""
    """The title of the session, or else its first words."""


class StreamedEvent(Value):
    """An event at its place among the events of all sessions. `row` only increases."""

    row: int
    session: SessionId
    """The session that wrote it; its forks share it."""
    seq: int
    at_ms: int
    event: Event


class Passage(Value):
    """A search hit. `pieces` is the snippet, split so that every second piece is a matched word."""

    session: SessionId
    seq: int
    turn: int
    at_ms: int
    snippet: str
    pieces: tuple[str, ...] = ()


class JournalProblem(Value):
    """An event that differs from what was written, or that was never written; `count` missing events in a row are one."""

    seq: int
    what: Literal["missing", "changed", "unreadable", "added"]
    count: int = 1


class Inspection(Value):
    """The result of verifying a journal. Without problems, the journal is exactly what was written, in order."""

    session: SessionId
    events: int
    problems: tuple[JournalProblem, ...] = ()
    last_hash: str = ""
    lost: tuple[str, ...] = ()
    """Large blobs of the session that are missing from the object store or changed there, and what is wrong with each."""

    @property
    def is_intact(self) -> bool:
        """Whether every event is as it was written, and every object that the store checks."""
        return not self.problems and not self.lost


class ArchiveManifest(Value):
    """The description of an exported session, stored in the archive."""

    session: SessionId
    events: int
    last_hash: str
    exported_ms: int
    format: int = FORMAT
    name: str | None = None
    problems: tuple[JournalProblem, ...] = ()
    lost: tuple[str, ...] = ()
    """Blobs that events refer to and that could not be read."""


class ArchiveSignature(Value):
    """The signature of an archive: an Ed25519 public key and what it signed with, in hexadecimal digits."""

    key: str
    value: str


SignArchive = Callable[[bytes], ArchiveSignature]
"""Signs the statement that stands for the content of an archive."""

FindSigner = Callable[[bytes, ArchiveSignature], Signer]
"""Says who signed a statement; empty if it is nobody that the person trusts, or the signature is not valid."""


class ExportedSession(Value):
    """A session that was exported."""

    manifest: ArchiveManifest
    unsigned_because: str = ""
    """Why it has no signature; empty if it has one."""

    @property
    def warning(self) -> str:
        """What a missing signature means, in words; empty if it has one."""
        reason = self.unsigned_because
        return f"not signed, so an import counts it as a stranger's: {reason}" if reason else ""


class ArchiveLimits(Value):
    """How much of an archive is read. A history is held in memory, and so is a content when its event is looked at."""

    journal_bytes: int = 64 << 20
    blob_bytes: int = 80 << 20
    """Files are stored in much smaller parts. The results and arguments of calls have at most 64 MiB by default."""


LARGE_ARCHIVE = ArchiveLimits(journal_bytes=1 << 30, blob_bytes=512 << 20)
"""For an archive that the person trusts to be large."""


class Arrival(Value):
    """What this machine decides about a session that arrives in a file."""

    workspace: str = ""
    """Its folder; empty for its own."""
    model: str = ""
    """Its model; empty until one is chosen."""
    limits: Limits | None = None
    """Its budget; None for the one in the file."""
    restore_point: RestorePointMade | None = None
    """Its files as they were restored, if they differ from its last restore point."""


PrepareArrival = Callable[[SessionId, Sequence[RecordedEvent]], Awaitable[Arrival]]
"""Restores the files of a session before the store lists it. If it raises, nothing is imported."""


class SessionShare(Value):
    """One session's share of its tree: what it spent since its fork, what it has reserved, and what was added to it."""

    spent: Amount = Amount()
    held: Amount = Amount()
    added: Limits = Limits()


Shares = Mapping[SessionId, SessionShare]
"""The shares of the sessions of a tree."""

ChangeShares = Callable[[Shares], Shares]
"""Gets all shares of a tree and returns those to write. To write nothing, it raises a HoldfastError. It must be quick, must not
wait, and can be called more than once."""


class BlobInfo(Value):
    """The name and size of a stored blob."""

    digest: str
    size: int


class Journal(Protocol):
    """The writer of a session. Holds the session's lease."""

    @property
    def session(self) -> SessionId:
        """The session that this journal belongs to."""
        ...

    @property
    def fence(self) -> int:
        """The fencing number of the lease. It increases with every lease of the session."""
        ...

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        """All events so far, in order; for a fork, including the parent's part."""
        ...

    def follow(self, follower: Follower) -> None:
        """Call the follower with every event so far and with every future one."""
        ...

    async def append(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Record events and the blobs they refer to, all or nothing; durable when it returns. Raises LeaseLost.

        Without arguments, it makes deferred events durable.
        """
        ...

    def append_deferred(self, event: Event) -> None:
        """Record an event together with the next append, or on its own a moment later.

        Use it for an event that has no effect outside before something else is appended: both become durable together. If
        a deferred event cannot be recorded on its own, the next append fails.
        """
        ...

    async def release(self) -> None:
        """Release the lease. Idempotent; a later append raises LeaseLost."""
        ...


class Hasher(Protocol):
    """Computes a digest over the parts of a file, in order; a `hashlib` object is one."""

    def update(self, content: bytes, /) -> object:
        """Process the next part."""
        ...


class BlobIngest(Protocol):
    """Stores blobs directly from open files, in any thread."""

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
        """Store a span of an open file, or what there is of it. Raises OSError if it cannot be read, StoreUnavailable if
        it cannot be stored."""
        ...


class BlobSource(Protocol):
    """A stored blob that can be copied into a file."""

    def copy_to(self, target: int, place: int = 0) -> int:
        """Write the blob to an open file at an offset, in any thread, and return its size. Raises JournalDamaged if the
        blob was changed."""
        ...


class BlobStore(Protocol):
    """Blobs, stored once each under their SHA-256."""

    async def put_blob(self, content: bytes) -> str:
        """Store bytes and return their SHA-256; durable when it returns."""
        ...

    async def blob(self, digest: str) -> bytes:
        """Return the bytes with this SHA-256, verified. Raises JournalDamaged if they are missing or changed."""
        ...

    def ingest(self) -> AbstractAsyncContextManager[BlobIngest]:
        """Store many blobs at once: all are durable when the block ends, none is kept if it ends with an error."""
        ...

    async def open_blobs(self, digests: Sequence[str]) -> Mapping[str, BlobSource]:
        """Open many blobs for copying into files. Raises JournalDamaged if one is missing."""
        ...


class StoreWatch(Protocol):
    """Waits for events that any process records in a store."""

    async def changed(self) -> None:
        """Return when there may be new events since the last call. It may return without one, and never misses one."""
        ...


class Store(BlobStore, Protocol):
    """The journals of all sessions and the blobs that their events refer to."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the store repaired or rebuilt since it was opened, one line each, for the user."""
        ...

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> Journal:
        """Create a session under this id, or a new one, and record its first event. Raises SessionExists, InvalidId."""
        ...

    async def open(self, session: SessionId) -> Journal:
        """Take the lease of a session. Raises SessionNotFound, SessionHeld, JournalDamaged."""
        ...

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> Journal:
        """Create a session that shares this one's events up to and including `at`, by reference."""
        ...

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[RecordedEvent]:
        """Return the events with a number above `after`. Needs no lease."""
        ...

    async def holder(self, session: SessionId) -> LeaseHolder | None:
        """Return the process that holds the session's lease, if any."""
        ...

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        """List sessions by activity, newest first."""
        ...

    async def session_page(
        self,
        *,
        before: str | None = None,
        limit: int = 50,
        folder: str | None = None,
        activity: Literal["processing", "waiting"] | None = None,
    ) -> SessionPage:
        """List sessions like `sessions`, a page at a time; the cost does not depend on how many there are."""
        ...

    async def waiting(self, session: SessionId | None = None) -> Sequence[WaitingEscalation]:
        """List what waits for a person, of one session or of all, by session as `sessions` lists them, oldest first in each.

        The cost depends only on how many wait."""
        ...

    async def last_row(self) -> int:
        """Return the row of the newest event of all sessions; 0 if there is none."""
        ...

    async def events_after(self, row: int, *, limit: int = 1000) -> Sequence[StreamedEvent]:
        """Return the events of all sessions behind a row, in order. An event never appears behind a row that was returned.

        A row that cannot be read is left out; `verify` reports it.
        """
        ...

    def watch(self) -> AbstractContextManager[StoreWatch]:
        """Watch for events that any process records, for the duration of the block."""
        ...

    async def summary(self, session: SessionId) -> SessionSummary:
        """Return one session's row of the list. Raises SessionNotFound."""
        ...

    async def find(self, reference: str) -> SessionId:
        """Find a session by id, name or unique prefix. Raises SessionNotFound, SessionAmbiguous."""
        ...

    async def shares(self, tree: SessionId) -> Shares:
        """Return the shares of the tree that grew from this session. A deleted session has none. Needs no lease."""
        ...

    async def change_shares(self, tree: SessionId, change: ChangeShares) -> Shares:
        """Change the shares of a tree in one transaction and return all of them; durable when it returns.

        Of a deleted session, nothing is written and nothing is returned. Raises what `change` raises.
        """
        ...

    async def search(self, text: str, *, limit: int = 20) -> Sequence[Passage]:
        """Find where all these words, or words that start with them, were said, newest first. Raises InvalidInput."""
        ...

    async def usage(self, *, since_day: str = "") -> Sequence[UsageTotal]:
        """What all sessions used since a day, one row a day, model, folder and pair of teams. A deleted session does not count.

        The cost depends on how many events were recorded since the last look, not on how many there are.
        """
        ...

    async def session_usage(
        self, *, since_day: str = "", session: SessionId | None = None
    ) -> Sequence[UsageTotal]:
        """The same by session, of all sessions or of one."""
        ...

    async def delete(self, session: SessionId) -> None:
        """Delete a session and the blobs that only it refers to. Raises SessionNotFound, SessionHeld."""
        ...

    async def remove(self, session: SessionId, *, reason: str) -> frozenset[str]:
        """Delete a session without its blobs, and return the blobs it referred to. `sweep` removes those.

        For deleting many sessions: `sweep` reads all remaining events, so it should run once.
        """
        ...

    async def sweep(self, removed: frozenset[str] = frozenset()) -> int:
        """Delete blobs that no event refers to, old ones and those just `removed`, and return how many."""
        ...

    async def verify(self, session: SessionId) -> Inspection:
        """Check a session's hash chain, event by event. Raises SessionNotFound."""
        ...

    async def verify_all(self) -> Sequence[Inspection]:
        """Check every session, newest first, including those that a damaged session list omits."""
        ...

    async def rebuild_index(self) -> int:
        """Rebuild the session list and the search from the journals, and return the number of sessions."""
        ...

    async def export_session(
        self, session: SessionId, path: Path, *, now_ms: int, sign: SignArchive | None = None
    ) -> ArchiveManifest:
        """Write a session to an archive; of a damaged one, what can be read, and unsigned. Raises InvalidInput, SessionNotFound."""
        ...

    async def import_session(
        self,
        path: Path,
        *,
        now_ms: int,
        prepare: PrepareArrival | None = None,
        limits: ArchiveLimits | None = None,
        find_signer: FindSigner | None = None,
    ) -> SessionId:
        """Add the session of an archive, completely or not at all. The archive chooses no model, policy or folder here.

        Its words are a stranger's, unless `find_signer` names who signed it.

        Raises InvalidInput, JournalDamaged if it was changed, SessionExists, and what `prepare` raises.
        """
        ...

    async def close(self) -> None:
        """Release every lease and stop. Idempotent."""
        ...


class PostedRequest(Value):
    """Something that a session is asked to do by a process that does not hold it."""

    id: str
    body: bytes


class StoredDocument(Value):
    """A document and its version, which changes with every change."""

    version: int = 0
    content: bytes | None = None
    """None if there is none yet."""


Right = Literal["look", "answer", "operate"]
"""What a device or a key may do: look at everything; also approve once and deny; also change sessions and save approvals."""


class ApiKey(Value):
    """A key for the API of `holdfast serve`, without its secret."""

    id: str
    principal: str
    """Whose key it is, as the record names them."""
    right: Right


HOST_QUEUE = "host:"
"""The beginning of the name of a queue that only the workers of one machine serve."""

Within = Callable[[object], Awaitable[None]]
"""Does something in the transaction of a store; it gets the store's handle of it."""
PostJobs = Callable[[object, Sequence[SessionId]], Awaitable[None]]
"""Posts a job for each of some sessions, in the transaction of a store."""


@runtime_checkable
class WorkStore(Store, Protocol):
    """A store that workers share: it also keeps what sessions are asked to do."""

    @property
    def address(self) -> str | None:
        """The address at which other processes find it; None if they cannot."""
        ...

    @property
    def engine(self) -> str:
        """The engine that carries the jobs of its workers, for all processes."""
        ...

    async def announce(self, role: str, *, key: str = "") -> None:
        """Tell an operator what this process does with the store, such as `worker`, and the id of the key that it signs with."""
        ...

    async def retake(self, journal: Journal) -> bool:
        """Take the lease of a released journal again, if nobody held the session since then.

        The journal then continues with a new fencing number. Otherwise nothing happens, and `open` reads the session again.
        """
        ...

    async def post_request(
        self, session: SessionId, body: bytes, *, id: str | None = None, post_jobs: PostJobs
    ) -> str:
        """Keep a request and post a job for its session, both or neither, and return the request's id. Raises SessionNotFound.

        A request with an id that was posted before is not kept again. Requests that arrive together may share a transaction, and those
        whose `post_jobs` is equal also its call.
        """
        ...

    async def in_transaction(self, within: Within) -> None:
        """Do something in a separate transaction."""
        ...

    async def requests(self, session: SessionId) -> Sequence[PostedRequest]:
        """What a session is asked to do and has not done yet, oldest first."""
        ...

    async def requested(self, sessions: Sequence[SessionId]) -> Mapping[SessionId, Sequence[PostedRequest]]:
        """What those of the sessions are asked to do that are asked for something."""
        ...

    def watch_requests(self) -> AbstractContextManager[StoreWatch]:
        """Watch for requests that any process posts, for the duration of the block."""
        ...

    async def remove_request(self, id: str) -> None:
        """Remove a request that was carried out. Idempotent."""
        ...

    async def document(self, name: str) -> StoredDocument:
        """A small document that all processes share, such as the saved grants."""
        ...

    async def put_document(self, name: str, content: bytes, *, version: int) -> bool:
        """Replace a document if it still has this version; durable when it returns. False if it has another one."""
        ...

    async def keep_api_key(self, key: ApiKey, hash: bytes) -> None:
        """Keep a new key with the hash of its secret."""
        ...

    async def api_key(self, id: str) -> tuple[ApiKey, bytes] | None:
        """A key and the hash of its secret; None if there is none."""
        ...

    async def api_keys(self) -> Sequence[ApiKey]:
        """All keys, oldest first."""
        ...

    async def remove_api_key(self, id: str) -> bool:
        """Revoke a key; it counts from the next request on. False if there is none."""
        ...


def as_work_store(store: Store) -> WorkStore | None:
    """The store as one that workers share; None if it is not. Fast: the members of a protocol are looked up once for each class."""
    kind = type(store)
    if kind not in _IS_WORK_STORE:
        _IS_WORK_STORE[kind] = isinstance(store, WorkStore)
    return cast("WorkStore", store) if _IS_WORK_STORE[kind] else None


_IS_WORK_STORE: dict[type, bool] = {}


class DatabaseLogin(Value):
    """How a library other than asyncpg logs in to the database of a store, with the rights of one tenant."""

    url: str
    """With the password, so `repr` leaves it out."""
    settings: dict[str, str]
    """Settings of the server for the connection."""
    enter: str
    """The first statement of a connection."""

    def __repr__(self) -> str:
        return f"DatabaseLogin(enter={self.enter!r})"


class WorkerPresence(Value):
    """A process that has the store open."""

    id: str
    host: str
    pid: int
    version: str
    role: str
    """What it does with the store, in its own words."""
    key: str
    """The id of the key that it signs snapshots with; empty if it runs no sessions."""
    seen_seconds: float
    """How long ago it was seen, by the clock of the database."""
    sessions: int
    """How many sessions it holds."""


class StoreStatus(Value):
    """What an operator sees of a store that workers share, of one tenant."""

    schema_found: int
    schema_needed: int
    server: str = ""
    tenant: str = ""
    tenants: int = 1
    """How many tenants there are."""
    engine: str = ""
    blobs: str = ""
    """Where large blobs are; empty if all are rows."""
    objects: int = 0
    object_bytes: int = 0
    keys: int = 0
    sessions: int = 0
    waiting: int = 0
    requests: int = 0
    bytes: int = 0
    workers: tuple[WorkerPresence, ...] = ()
    risks: tuple[str, ...] = ()
    """What of the server's settings can lose events that were acknowledged."""
