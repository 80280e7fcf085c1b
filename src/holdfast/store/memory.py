"""The in-memory store: it keeps every promise of the contract except durability. For tests and throw-away runs."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from holdfast.core import Clock, SessionId, check_session_id, digest_bytes, is_short_id, new_session_id
from holdfast.core.errors import (
    HoldfastError,
    InvalidInput,
    InvalidName,
    JournalDamaged,
    LeaseLost,
    SessionExists,
    SessionHeld,
    SessionNotFound,
)
from holdfast.core.events import (
    GENESIS,
    EscalationOpened,
    Event,
    Parent,
    RecordedEvent,
    SessionOpened,
    SessionRewound,
    encode_event,
)
from holdfast.store.archive.format import ArchiveReader, RawEvent
from holdfast.store.archive.transfer import arrival_events, check_target, write_archive
from holdfast.store.blobs.copy_out import Reflinker, StoredBlob, read_span
from holdfast.store.blobs.references import digests_in
from holdfast.store.contract import (
    ApiKey,
    ArchiveLimits,
    ArchiveManifest,
    Arrival,
    BlobInfo,
    ChangeShares,
    FindSigner,
    Follower,
    Hasher,
    Inspection,
    Journal,
    LeaseHolder,
    Passage,
    PostedRequest,
    PostJobs,
    PrepareArrival,
    SessionPage,
    SessionShare,
    SessionSummary,
    Shares,
    SignArchive,
    StoredDocument,
    StreamedEvent,
    WaitingEscalation,
    Within,
)
from holdfast.store.derived.search_text import query_words, search_tokens, searchable_texts, snippet
from holdfast.store.derived.usage import UsageCounts, UsageFold, UsageKey, UsageTotal
from holdfast.store.entries import chain_entries, encode_entry
from holdfast.store.event_log import EventLog
from holdfast.store.names import alias, names_in, possible_names, require_single_match
from holdfast.store.pending_write import PendingWrite
from holdfast.store.summary import SummaryState, advance_summary, empty_summary, is_activity, summarize


class _Session:
    """One session: its events, its summary and its lease."""

    def __init__(self, id: SessionId, inherited: Sequence[RecordedEvent]) -> None:
        self.id = id
        self.recorded = list(inherited)
        self.state: SummaryState = summarize(id, self.recorded) if inherited else empty_summary(id)
        self.rank = 0
        self.fence = 0
        self.holder: LeaseHolder | None = None
        self.requests: dict[str, PostedRequest] = {}

    @property
    def last_hash(self) -> bytes:
        return self.recorded[-1].hash if self.recorded else GENESIS


class MemoryJournal:
    """The writer of a session in memory."""

    def __init__(self, store: "MemoryStore", held: _Session) -> None:
        self._store = store
        self._held = held
        self._fence = held.fence
        self._log = EventLog(held.recorded)

    @property
    def session(self) -> SessionId:
        return self._held.id

    @property
    def fence(self) -> int:
        return self._fence

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        return self._log.recorded

    def follow(self, follower: Follower) -> None:
        self._log.follow(follower)

    def append(self, *events: Event, blobs: Sequence[bytes] = ()) -> Coroutine[Any, Any, None]:
        if not (events or blobs):
            return PendingWrite.done()
        try:
            if self._held.fence != self._fence:
                raise LeaseLost(f"the lease of {self.session!r} was released or taken over")
            self._log.extend(self._store._record(self._held, events, blobs))
        except HoldfastError as refusal:
            return PendingWrite.failed(refusal)
        return PendingWrite.done()

    def append_deferred(self, event: Event) -> None:
        if self._held.fence == self._fence:  # otherwise the next append raises
            self._log.extend(self._store._record(self._held, (event,), ()))

    async def release(self) -> None:
        if self._held.fence == self._fence:
            self._held.fence += 1
            self._held.holder = None

    def continue_with(self, fence: int) -> None:
        """Write again, with the lease that was taken again. For the store."""
        self._fence = fence


class MemoryIngest:
    """Blobs that are being stored in memory."""

    def __init__(self) -> None:
        self.taken: dict[str, bytes] = {}

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        digest = digest_bytes(content)
        self.taken[digest] = content
        return BlobInfo(digest=digest, size=len(content))


class MemoryWatch:
    """Wakes its owner after every event."""

    def __init__(self) -> None:
        self.is_changed = asyncio.Event()

    async def changed(self) -> None:
        await self.is_changed.wait()
        self.is_changed.clear()


class MemoryStore:
    """All journals and blobs, in the memory of this process."""

    notices: tuple[str, ...] = ()
    address: str | None = None

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[SessionId, _Session] = {}
        self._blobs: dict[str, bytes] = {}
        self._documents: dict[str, StoredDocument] = {}
        self._api_keys: dict[str, tuple[ApiKey, bytes]] = {}
        self._shares: dict[SessionId, dict[SessionId, SessionShare]] = {}
        self._rank = 0
        self._rows: list[RecordedEvent] = []
        self._watches: list[MemoryWatch] = []
        self._request_watches: list[MemoryWatch] = []

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> MemoryJournal:
        return self._create(opened, session, inherited=())

    async def open(self, session: SessionId) -> MemoryJournal:
        return self._hold(self._get(session))

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> MemoryJournal:
        source = self._get(session)
        if not 1 <= at <= len(source.recorded):
            raise InvalidInput(f"{session!r} has events 1 to {len(source.recorded)}, but no event {at}")
        opened = msgspec.structs.replace(opened, parent=Parent(session=source.id, seq=at))
        return self._create(opened, None, inherited=source.recorded[:at])

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[RecordedEvent]:
        return self._get(session).recorded[max(after, 0) :]

    async def holder(self, session: SessionId) -> LeaseHolder | None:
        return self._get(session).holder

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        lines = [
            one.state.summary
            for one in self._newest()
            if folder is None or one.state.summary.folder == folder
        ]
        return lines if limit is None else lines[: max(limit, 0)]

    async def session_page(
        self,
        *,
        before: str | None = None,
        limit: int = 50,
        folder: str | None = None,
        activity: Literal["processing", "waiting"] | None = None,
    ) -> SessionPage:
        rank = int(before) if before is not None else self._rank + 1
        behind = [
            one
            for one in self._newest()
            if one.rank < rank
            and folder in (None, one.state.summary.folder)
            and activity in (None, one.state.summary.activity)
        ]
        shown = behind[: max(1, limit)]
        return SessionPage(
            sessions=tuple(one.state.summary for one in shown),
            next=str(shown[-1].rank) if len(behind) > len(shown) else None,
        )

    async def waiting(self, session: SessionId | None = None) -> Sequence[WaitingEscalation]:
        chosen = self._newest() if session is None else [self._get(session)]
        return [
            WaitingEscalation(
                session=one.id,
                name=line.name,
                escalation=event.escalation,
                title=line.title or line.first_words,
            )
            for one in chosen
            for line in (one.state.summary,)
            for open in one.state.waiting
            if isinstance(event := one.recorded[open.seq - 1].event, EscalationOpened)
        ]

    async def last_row(self) -> int:
        return len(self._rows)

    async def events_after(self, row: int, *, limit: int = 1000) -> Sequence[StreamedEvent]:
        return [
            StreamedEvent(row=place, session=one.session, seq=one.seq, at_ms=one.at_ms, event=one.event)
            for place, one in enumerate(self._rows[row : row + max(1, limit)], row + 1)
        ]

    @contextmanager
    def watch(self) -> Iterator["MemoryWatch"]:
        watch = MemoryWatch()
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    async def summary(self, session: SessionId) -> SessionSummary:
        return self._get(session).state.summary

    async def find(self, reference: str) -> SessionId:
        if reference in self._sessions:
            return SessionId(reference)
        wanted = possible_names(reference)
        for one in self._sessions.values():
            if one.state.summary.name in wanted:
                return one.id
        matches = sorted(id for id in self._sessions if id.startswith(reference))
        if not matches and is_short_id(reference):
            matches = sorted(id for id in self._sessions if id.endswith(f"-{reference}"))
        return require_single_match(reference, matches)

    async def shares(self, tree: SessionId) -> Shares:
        return dict(self._shares.get(tree, {}))

    async def change_shares(self, tree: SessionId, change: ChangeShares) -> Shares:
        if tree in self._sessions:
            self._shares.setdefault(tree, {}).update(change(await self.shares(tree)))
        return await self.shares(tree)

    async def search(self, text: str, *, limit: int = 20) -> Sequence[Passage]:
        words = [token for word in query_words(text) for token in search_tokens(word)]
        found = [
            Passage(
                session=one.id,
                seq=record.seq,
                turn=turn,
                at_ms=record.at_ms,
                snippet="".join(snippet(said, words)),
                pieces=snippet(said, words),
            )
            for one in self._sessions.values()
            for record in one.recorded
            if record.session == one.id
            for turn, said in searchable_texts(record.event)
            if all(any(token.startswith(word) for token in search_tokens(said)) for word in words)
        ]
        return sorted(found, key=lambda one: (one.at_ms, one.seq), reverse=True)[: max(limit, 0)]

    async def usage(self, *, since_day: str = "") -> Sequence[UsageTotal]:
        found: dict[UsageKey, UsageCounts] = {}
        for each in await self.session_usage(since_day=since_day):
            found[each.key] = found.get(each.key, UsageCounts()).plus(each.counts)
        rows = [UsageTotal(key=key, counts=counts) for key, counts in found.items()]
        return sorted(rows, key=lambda row: msgspec.structs.astuple(row.key))

    async def session_usage(
        self, *, since_day: str = "", session: SessionId | None = None
    ) -> Sequence[UsageTotal]:
        fold = UsageFold({}, {})
        for one in self._rows:
            if one.session in self._sessions and session in (None, one.session):
                fold.add(one.session, one.at_ms, one.event)
        return [each for each in fold.totals() if each.key.day >= since_day]

    async def delete(self, session: SessionId) -> None:
        await self.sweep(await self.remove(session, reason="deleted"))

    async def remove(self, session: SessionId, *, reason: str) -> frozenset[str]:
        found = self._get(session)
        if found.holder is not None:
            raise SessionHeld(f"{session!r} is open in this process", hint="close it first")
        del self._sessions[found.id]
        self._shares.pop(found.id, None)
        return frozenset(self._referenced(found.recorded))

    async def sweep(self, removed: frozenset[str] = frozenset()) -> int:
        remaining = [record for one in self._sessions.values() for record in one.recorded]
        orphans = removed - self._referenced(remaining)
        for digest in orphans:
            del self._blobs[digest]
        return len(orphans)

    async def verify(self, session: SessionId) -> Inspection:
        found = self._get(session)
        return Inspection(session=found.id, events=len(found.recorded), last_hash=found.last_hash.hex())

    async def verify_all(self) -> Sequence[Inspection]:
        return [await self.verify(one.id) for one in self._newest()]

    async def rebuild_index(self) -> int:
        return len(self._sessions)

    async def export_session(
        self, session: SessionId, path: Path, *, now_ms: int, sign: SignArchive | None = None
    ) -> ArchiveManifest:
        found = self._get(session)
        check_target(path)
        lines = [
            RawEvent(
                session=one.session, seq=one.seq, at_ms=one.at_ms, hash=one.hash, body=encode_event(one.event)
            )
            for one in found.recorded
        ]
        manifest = ArchiveManifest(
            session=found.id,
            events=len(lines),
            last_hash=found.last_hash.hex(),
            exported_ms=now_ms,
            name=found.state.summary.name,
        )
        digests = sorted(self._referenced(found.recorded))
        return write_archive(path, manifest, lines, [(each, self._blobs[each]) for each in digests], sign)

    async def import_session(
        self,
        path: Path,
        *,
        now_ms: int,
        prepare: PrepareArrival | None = None,
        limits: ArchiveLimits | None = None,
        find_signer: FindSigner | None = None,
    ) -> SessionId:
        reader = ArchiveReader(path, limits)
        try:
            manifest, lines, events = reader.journal()
            blobs = {digest: reader.blob(digest) for digest in reader.digests()}
            signer = reader.signer(find_signer)
        finally:
            reader.close()
        if manifest.session in self._sessions:
            raise SessionExists(f"there is already a session {manifest.session!r}", hint="delete it first")
        hashes = [GENESIS, *(line.hash for line in lines)]
        recorded = [
            RecordedEvent(line.session, line.seq, line.at_ms, event, line.hash, previous)
            for line, event, previous in zip(lines, events, hashes[:-1], strict=True)
        ]
        new = _Session(manifest.session, recorded)
        old_name = new.state.summary.name
        name = self._free_name(old_name) if old_name is not None else None
        added = blobs.keys() - self._blobs.keys()
        self._blobs.update(blobs)
        try:
            arrival = await prepare(new.id, recorded) if prepare is not None else Arrival()
        except BaseException:
            for digest in added:
                del self._blobs[digest]
            raise
        self._sessions[new.id] = new
        self._add_rows(recorded)
        self._record(new, arrival_events(recorded, arrival, old_name=old_name, name=name, signer=signer), ())
        return new.id

    @property
    def engine(self) -> str:
        return "memory"

    async def announce(self, role: str, *, key: str = "") -> None:
        """No other process sees it."""

    async def retake(self, journal: Journal) -> bool:
        held = self._sessions.get(journal.session)
        # A release adds one to the number, and so does the next grant.
        if held is None or held.holder is not None or held.fence != journal.fence + 1:
            return False
        assert isinstance(journal, MemoryJournal)
        self._grant(held)
        journal.continue_with(held.fence)
        return True

    async def post_request(
        self, session: SessionId, body: bytes, *, id: str | None = None, post_jobs: PostJobs
    ) -> str:
        found = self._get(session)
        name = id or secrets.token_hex(12)
        await post_jobs(None, [session])
        found.requests.setdefault(name, PostedRequest(id=name, body=body))
        for watch in self._request_watches:
            watch.is_changed.set()
        return name

    async def in_transaction(self, within: Within) -> None:
        await within(None)

    async def requests(self, session: SessionId) -> Sequence[PostedRequest]:
        found = self._sessions.get(check_session_id(session))
        return [] if found is None else list(found.requests.values())

    async def requested(self, sessions: Sequence[SessionId]) -> Mapping[SessionId, Sequence[PostedRequest]]:
        return {id: posted for id in sessions if (posted := await self.requests(id))}

    @contextmanager
    def watch_requests(self) -> Iterator["MemoryWatch"]:
        watch = MemoryWatch()
        self._request_watches.append(watch)
        try:
            yield watch
        finally:
            self._request_watches.remove(watch)

    async def remove_request(self, id: str) -> None:
        for session in self._sessions.values():
            session.requests.pop(id, None)

    async def document(self, name: str) -> StoredDocument:
        return self._documents.get(name, StoredDocument())

    async def put_document(self, name: str, content: bytes, *, version: int) -> bool:
        if self._documents.get(name, StoredDocument()).version != version:
            return False
        self._documents[name] = StoredDocument(version=version + 1, content=content)
        return True

    async def keep_api_key(self, key: ApiKey, hash: bytes) -> None:
        self._api_keys[key.id] = (key, hash)

    async def api_key(self, id: str) -> tuple[ApiKey, bytes] | None:
        return self._api_keys.get(id)

    async def api_keys(self) -> Sequence[ApiKey]:
        return [key for key, _ in self._api_keys.values()]

    async def remove_api_key(self, id: str) -> bool:
        return self._api_keys.pop(id, None) is not None

    async def put_blob(self, content: bytes) -> str:
        name = digest_bytes(content)
        self._blobs[name] = bytes(content)
        return name

    async def blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise JournalDamaged(f"the blob {digest!r} is missing") from None

    @asynccontextmanager
    async def ingest(self) -> AsyncIterator[MemoryIngest]:
        ingest = MemoryIngest()
        yield ingest
        self._blobs.update(ingest.taken)

    async def open_blobs(self, digests: Sequence[str]) -> Mapping[str, StoredBlob]:
        return {digest: StoredBlob(digest, await self.blob(digest), Reflinker()) for digest in digests}

    async def close(self) -> None:
        for session in self._sessions.values():
            session.fence += 1
            session.holder = None

    def _get(self, session: SessionId) -> _Session:
        found = self._sessions.get(check_session_id(session))
        if found is None:
            raise SessionNotFound(f"there is no session {session!r}")
        return found

    def _newest(self) -> list[_Session]:
        return sorted(self._sessions.values(), key=lambda one: -one.rank)

    def _create(
        self, opened: SessionOpened, session: SessionId | None, inherited: Sequence[RecordedEvent]
    ) -> MemoryJournal:
        id = check_session_id(session) if session is not None else new_session_id(self._clock)
        while session is None and id in self._sessions:
            id = new_session_id(self._clock)
        if id in self._sessions:
            raise SessionExists(f"there is already a session {id!r}", hint="choose another id")
        new = _Session(id, inherited)
        self._record(new, [opened], ())
        self._sessions[id] = new
        return self._hold(new)

    def _hold(self, session: _Session) -> MemoryJournal:
        if session.holder is not None:
            raise SessionHeld(f"{session.id!r} is already open in this process", hint="close it there first")
        self._grant(session)
        return MemoryJournal(self, session)

    def _grant(self, session: _Session) -> None:
        session.fence += 1
        session.holder = LeaseHolder(
            pid=os.getpid(), host=socket.gethostname(), since_ms=self._clock.now_ms()
        )

    def _record(
        self, session: _Session, events: Sequence[Event], blobs: Sequence[bytes]
    ) -> list[RecordedEvent]:
        now_ms = self._clock.now_ms()
        entries = [encode_entry(event, bytes) for event in events]
        records = chain_entries(
            session.id, entries, at_ms=now_ms, seq=len(session.recorded), previous=session.last_hash
        )
        for name in names_in(entry.event for entry in entries):
            if self._is_taken(name, by_other_than=session):
                raise SessionExists(f"another session has the name {name!r}", hint="choose another name")
        for content in blobs:
            self._blobs[digest_bytes(content)] = bytes(content)
        session.recorded.extend(records)
        self._add_rows(records)
        if any(isinstance(record.event, SessionRewound) for record in records):
            session.state = summarize(session.id, session.recorded)
        else:
            session.state = advance_summary(session.state, records)
        if any(is_activity(record) for record in records):
            self._rank += 1
            session.rank = self._rank
        return records

    def _add_rows(self, records: Sequence[RecordedEvent]) -> None:
        self._rows.extend(records)
        for watch in self._watches:
            watch.is_changed.set()

    def _is_taken(self, name: str, *, by_other_than: _Session | None = None) -> bool:
        others = [one.state.summary for one in self._sessions.values() if one is not by_other_than]
        return any(name in (other.name, other.id) for other in others)

    def _free_name(self, given: str) -> str | None:
        try:
            name = alias(given)
        except InvalidName:
            return None
        return None if self._is_taken(name) else name

    def _referenced(self, recorded: Iterable[RecordedEvent]) -> set[str]:
        """The blobs that these events refer to, directly or through other blobs."""
        pending = set[str]().union(*(digests_in(encode_event(one.event)) for one in recorded))
        found: set[str] = set()
        while pending:
            digest = pending.pop()
            if digest in self._blobs and digest not in found:
                found.add(digest)
                pending |= digests_in(self._blobs[digest])
        return found
