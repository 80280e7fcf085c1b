"""The journal of a session in the PostgreSQL store."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from holdfast.core import Clock, SessionId, digest_bytes
from holdfast.core.errors import InvalidInput, LeaseLost
from holdfast.core.events import Event, RecordedEvent
from holdfast.store.blobs.store import NewBlob
from holdfast.store.contract import Follower, Redact
from holdfast.store.entries import Entry, encode_entry
from holdfast.store.event_log import EventLog
from holdfast.store.history import Head
from holdfast.store.names import names_in
from holdfast.store.pending_write import PendingWrite
from holdfast.store.postgres.writer import Append, GroupWriter


class PostgresJournal:
    """The writer of a session. The store creates it after it has taken the lease."""

    def __init__(
        self,
        *,
        session: SessionId,
        fence: int,
        history: Sequence[RecordedEvent],
        head: Head,
        writer: GroupWriter,
        clock: Clock,
        redact: Redact,
        release: Callable[[int], Coroutine[Any, Any, None]],
    ) -> None:
        self.session = session
        self.fence = fence
        self.head = head
        self.is_uncertain = False
        self._log = EventLog(history)
        self._writer = writer
        self._clock = clock
        self._redact = redact
        self._release = release
        self._latest: asyncio.Future[None] | None = None
        self._deferred: list[Entry] = []
        self._deferred_problem: BaseException | None = None
        """Why deferred events could not be recorded; the next append raises it."""
        self._released: asyncio.Task[None] | None = None

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        return self._log.recorded

    @property
    def is_released(self) -> bool:
        """Whether the lease was given back."""
        return self._released is not None and self._released.done()

    def follow(self, follower: Follower) -> None:
        self._log.follow(follower)

    def continue_with(self, fence: int) -> None:
        """Write again, with the lease that was taken again. For the store."""
        self.fence, self._released = fence, None

    def adopt(self, head: Head, records: Sequence[RecordedEvent]) -> None:
        """Take over events that are durable now. For the writer."""
        self.head = head
        self._log.extend(records)

    def append(self, *events: Event, blobs: Sequence[bytes] = ()) -> Coroutine[Any, Any, None]:
        # Encoded now, so that later changes by the caller do not alter the record.
        try:
            entries = [encode_entry(event, self._redact) for event in events]
        except InvalidInput as refusal:
            return PendingWrite.failed(refusal)
        if self._deferred and (blobs or names_in(events)):
            self._write_deferred()  # an append that can be refused carries no deferred events
        if self._deferred_problem is not None:
            problem, self._deferred_problem = self._deferred_problem, None
            return PendingWrite.failed(problem)
        if not (entries or blobs or self._deferred):
            # Deferred events may be on their way.
            latest = self._latest
            return PendingWrite.done() if latest is None else PendingWrite(asyncio.shield(latest))
        if self._released is not None:
            return PendingWrite.failed(LeaseLost(f"the lease of {self.session!r} was released"))
        # Shielded: who stops waiting does not stop the write.
        return PendingWrite(asyncio.shield(self._write(entries, blobs)))

    def append_deferred(self, event: Event) -> None:
        if not self._deferred:
            self._writer.deferral_timer.schedule(self._write_deferred)
        self._deferred.append(encode_entry(event, self._redact))

    async def release(self) -> None:
        if self._released is None:
            self._write_deferred()
            self._released = asyncio.create_task(self._let_go(self._latest))
        await asyncio.shield(self._released)

    def _write_deferred(self) -> None:
        if self._deferred:
            self._write([]).add_done_callback(self._note_failure)

    def _note_failure(self, written: "asyncio.Future[None]") -> None:
        self._deferred_problem = self._deferred_problem or written.exception()

    def _write(self, new: Sequence[Entry], blobs: Sequence[bytes] = ()) -> "asyncio.Future[None]":
        """Submit deferred and new events; all are recorded or none."""
        entries, self._deferred = [*self._deferred, *new], []
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        drafts = [NewBlob(digest=digest_bytes(content), content=bytes(content)) for content in blobs]
        append = Append(
            journal=self, at_ms=self._clock.now_ms(), entries=entries, blobs=drafts, future=future
        )
        self._latest = future
        future.add_done_callback(self._forget)
        self._writer.submit(append)
        return future

    def _forget(self, written: "asyncio.Future[None]") -> None:
        if self._latest is written:
            self._latest = None

    async def _let_go(self, latest: "asyncio.Future[None] | None") -> None:
        if latest is not None:
            await asyncio.wait([latest])
        await self._release(self.fence)
