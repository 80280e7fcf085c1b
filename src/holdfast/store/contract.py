"""What every store promises. Above it lies everything that wants to survive a crash; below it, a disk.

A store holds journals. A journal has one writer at a time, proven by a lease whose fencing number every append carries;
reading needs no lease. An append is durable when it returns, and events are committed in the order of the calls,
awaited or not. Whatever else a store keeps (index, last pointer, search) is derived from the journals.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from typing import Literal, Protocol

from holdfast.core import SessionId, Value
from holdfast.core.events import AnyEvent, Parent, RecordedEvent, SessionOpened

Follower = Callable[[RecordedEvent], None]
"""Called with every recorded event, in order, once it is durable. It must not raise and must not wait."""


class LeaseHolder(Value):
    """Who writes a session now."""

    pid: int
    host: str
    since_ms: int


class SessionSummary(Value):
    """One line of the list of sessions, derived from its journal."""

    id: SessionId
    name: str | None = None
    description: str = ""
    folder: str = ""
    workspace: str = ""
    model: str = ""
    policy: str = ""
    created_ms: int = 0
    active_ms: int = 0
    turns: int = 0
    messages: int = 0
    first_words: str = ""
    tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    lifecycle: Literal["open", "paused", "completed", "aborted", "failed"] = "open"
    activity: Literal["ready", "processing", "waiting"] = "ready"
    waiting_since_ms: int | None = None
    is_pinned: bool = False
    is_damaged: bool = False
    parent: Parent | None = None
    events: int = 0


class Journal(Protocol):
    """The one writer of a session. `recorded` is everything so far, the parent's part of a fork included."""

    @property
    def session(self) -> SessionId:
        """Whose journal this is."""
        ...

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        """Everything so far, in order."""
        ...

    def follow(self, follower: Follower) -> None:
        """Hand the follower everything so far, then everything to come."""
        ...

    async def append(self, *events: AnyEvent, blobs: Sequence[bytes] = ()) -> None:
        """Record events, with the blobs they name, all or none; durable when it returns. Raises LeaseLost.

        Without any, what was left is durable then.
        """
        ...

    def leave(self, event: AnyEvent) -> None:
        """Have an event recorded together with whatever is appended next, or by itself in a moment.

        For what nobody outside hears of before something else was appended: that is durable with it or not at all. An event
        that could not be recorded by itself fails the next append.
        """
        ...

    async def release(self) -> None:
        """Give the lease back. Idempotent; appending afterwards raises LeaseLost."""
        ...


class Kept(Value):
    """A content that was taken in."""

    digest: str
    size: int


class Hasher(Protocol):
    """What sums up a file whose parts are taken one after the other, such as a hash."""

    def update(self, content: bytes, /) -> object:
        """Take notice of the next part."""
        ...


class BlobIngest(Protocol):
    """Takes contents straight from open files, in any thread."""

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> Kept:
        """Take a part of an open file, or as much of it as there is. Raises OSError where it cannot be read, StoreUnavailable
        where it cannot be kept."""
        ...


class BlobSource(Protocol):
    """A content on its way out."""

    def pour(self, target: int, place: int = 0) -> int:
        """Put it at a place in an open file, in any thread; how many bytes. Raises JournalDamaged where it was changed."""
        ...


class Contents(Protocol):
    """Where contents lie under their SHA-256, each once."""

    async def put_blob(self, content: bytes) -> str:
        """Keep bytes under their SHA-256; durable when it returns."""
        ...

    async def blob(self, digest: str) -> bytes:
        """The bytes with this SHA-256, checked. Raises JournalDamaged where they are missing or changed."""
        ...

    def intake(self) -> AbstractAsyncContextManager[BlobIngest]:
        """For keeping many contents at once: durable when the block ends, none of them if it ends with an error."""
        ...

    async def contents(self, digests: Sequence[str]) -> Mapping[str, BlobSource]:
        """For getting many contents at once, to be poured into files. Raises JournalDamaged where one is missing."""
        ...


class Store(Contents, Protocol):
    """Where journals live, and the contents that their events name."""

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> Journal:
        """Claim an id, a new one if none is given, and record the first event. Raises SessionExists, InvalidId."""
        ...

    async def open(self, session: SessionId) -> Journal:
        """Take the lease of a session. Raises SessionNotFound, SessionHeld, JournalDamaged."""
        ...

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> Journal:
        """A new session whose history is this one's up to and with `at`, by reference and not by copy."""
        ...

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[RecordedEvent]:
        """The events with a number above `after`; needs no lease."""
        ...

    async def holder(self, session: SessionId) -> LeaseHolder | None:
        """Who writes it now, if anyone."""
        ...

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        """Newest activity first."""
        ...

    async def summary(self, session: SessionId) -> SessionSummary:
        """One session's line. Raises SessionNotFound."""
        ...

    async def find(self, reference: str) -> SessionId:
        """The session with this id, this name or, if only one fits, this prefix. Raises SessionNotFound, SessionAmbiguous."""
        ...

    async def delete(self, session: SessionId) -> None:
        """Remove a session and all that is reachable only from it. Raises SessionNotFound, SessionHeld."""
        ...

    async def close(self) -> None:
        """Release every lease and stop. Idempotent."""
        ...
