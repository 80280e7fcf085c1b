"""The PostgreSQL store: the journals of many machines in one database.

Reads use a few connections, appends have one of their own (`writer`), and so has the presence of this process.
"""

import asyncio
import secrets
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeVar

import asyncpg
import msgspec

import holdfast.store.postgres.archive as archive
import holdfast.store.postgres.inspection as inspection
import holdfast.store.postgres.search as search
import holdfast.store.postgres.stream as stream
import holdfast.store.postgres.usage as usage
from holdfast.core import Clock, SessionId, check_session_id, new_session_id
from holdfast.core.errors import HoldfastError, JournalDamaged, StoreUnavailable
from holdfast.core.events import Parent, RecordedEvent, SessionOpened
from holdfast.store.archive.transfer import check_target
from holdfast.store.contract import (
    ApiKey,
    ArchiveLimits,
    ArchiveManifest,
    Arrival,
    ChangeShares,
    FindSigner,
    Inspection,
    Journal,
    LeaseHolder,
    Passage,
    PostedRequest,
    PostJobs,
    PrepareArrival,
    Redact,
    SessionPage,
    SessionSummary,
    Shares,
    SignArchive,
    StoredDocument,
    StoreWatch,
    StreamedEvent,
    WaitingEscalation,
    Within,
)
from holdfast.store.derived.usage import UsageTotal
from holdfast.store.files.session_files import remove_session_files
from holdfast.store.history import Head, not_found
from holdfast.store.home import Home
from holdfast.store.names import IdTaken
from holdfast.store.postgres.blob_store import PostgresBlobStore
from holdfast.store.postgres.database import OUTAGE_SECONDS, SQL, Database
from holdfast.store.postgres.grouped_calls import GroupedCalls
from holdfast.store.postgres.journal import PostgresJournal
from holdfast.store.postgres.migrations import require_current, schema_status
from holdfast.store.postgres.news import REQUESTS, News
from holdfast.store.postgres.objects import LARGE_BYTES, BlobObjects
from holdfast.store.postgres.presence import PRESENCE_SECONDS, Presence
from holdfast.store.postgres.rows import decode_state, list_sessions, load, load_after, load_upto
from holdfast.store.postgres.sessions import (
    NewRequest,
    NewSession,
    find,
    held,
    holder_of,
    post_all,
    remove,
    require_session,
)
from holdfast.store.postgres.shares import TreeShares
from holdfast.store.postgres.tenants import DEFAULT_ENGINE, read_settings, require_tenant
from holdfast.store.postgres.writer import GroupWriter

Result = TypeVar("Result")
Taken = TypeVar("Taken", bound=PostgresJournal | None)


class PostgresStore(PostgresBlobStore):
    """The store in a PostgreSQL database. Created by `start`, ended by `close`."""

    notices: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        home: Home,
        clock: Clock,
        database: Database,
        presence: Presence,
        redact: Redact,
        objects: BlobObjects | None = None,
        engine: str = DEFAULT_ENGINE,
    ) -> None:
        super().__init__(database=database, clock=clock, objects=objects)
        self.engine = engine
        self._home = home
        self._redact = redact
        self._presence = presence
        self._news = News(database)
        self._shares = TreeShares(database)
        self._writer = GroupWriter(
            database.url,
            worker=presence.id,
            outage_seconds=database.outage_seconds,
            on_commit=self._news.recorded,
        )
        self._journals: weakref.WeakValueDictionary[SessionId, PostgresJournal] = (
            weakref.WeakValueDictionary()
        )
        self._released = GroupedCalls(self._release_some)
        self._retaken = GroupedCalls(self._retake_some)
        self._tallies = GroupedCalls(self._tallies_of)
        self._requests = GroupedCalls(self.requested)
        self._posted = GroupedCalls(self._post_some)
        self._removed = GroupedCalls(self._remove_requests)
        self._taking: dict[SessionId, asyncio.Task[object]] = {}
        """Leases that are being taken, also for callers who no longer wait."""
        self._is_closed = False

    @classmethod
    async def start(
        cls,
        url: str,
        *,
        home: Home,
        clock: Clock,
        redact: Redact = bytes,
        presence_seconds: float = PRESENCE_SECONDS,
        outage_seconds: float = OUTAGE_SECONDS,
        large_bytes: int = LARGE_BYTES,
    ) -> "PostgresStore":
        """Open the store at an address; `home` is for what stays on this machine. Raises StoreUnavailable.

        Blobs above `large_bytes` are objects, if the store has a place for them.
        """
        database = await Database.open(url, outage_seconds=outage_seconds)
        presence = Presence(url, version=version("holdfast"), seconds=presence_seconds)
        try:
            require_current(await database.read(schema_status), url)
            await database.read(lambda connection: require_tenant(connection, url, database.tenant))
            home.prepare()
            home.claim_for_tenant(database.tenant)
            await database.write(lambda connection: connection.execute(SQL["move_places"]))
            await database.read(presence.arrive)
            settings = await database.read(read_settings)
            place = settings.get("blobs")
            objects = BlobObjects(place, tenant=database.tenant, large_bytes=large_bytes) if place else None
        except BaseException:
            await database.close()
            raise
        presence.start()
        return cls(
            home=home,
            clock=clock,
            database=database,
            presence=presence,
            redact=redact,
            objects=objects,
            engine=settings.get("engine", DEFAULT_ENGINE),
        )

    @property
    def address(self) -> str:
        return self._database.url

    @property
    def home(self) -> Home:
        """The data directory of this machine."""
        return self._home

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> PostgresJournal:
        return await self._create(opened, session, ())

    async def open(self, session: SessionId) -> PostgresJournal:
        key = check_session_id(session)
        return await self._taken(key, lambda: self._open(key))

    async def retake(self, journal: Journal) -> bool:
        assert isinstance(journal, PostgresJournal)
        if self._journals.get(journal.session) is not journal:
            return False  # opened here since
        return await self._taken(journal.session, partial(self._retake, journal)) is not None

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> PostgresJournal:
        source = check_session_id(session)
        known = self._journals.get(source)
        if known is not None and 1 <= at <= len(known.recorded):
            history: Sequence[RecordedEvent] = known.recorded[:at]
        else:
            history = await self._database.read(lambda connection: load_upto(connection, source, at))
        opened = msgspec.structs.replace(opened, parent=Parent(session=source, seq=at))
        return await self._create(opened, None, history)

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[RecordedEvent]:
        key = check_session_id(session)
        return await self._database.read(lambda connection: load_after(connection, key, after))

    async def holder(self, session: SessionId) -> LeaseHolder | None:
        key = check_session_id(session)

        async def look(connection: asyncpg.Connection) -> LeaseHolder | None:
            await require_session(connection, key)
            return await holder_of(connection, key, self._presence)

        return await self._database.read(look)

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        return await self._database.read(
            lambda connection: list_sessions(connection, limit=limit, folder=folder)
        )

    async def session_page(
        self,
        *,
        before: str | None = None,
        limit: int = 50,
        folder: str | None = None,
        activity: Literal["processing", "waiting"] | None = None,
    ) -> SessionPage:
        return await self._database.read(
            partial(stream.page_sessions, before=before, limit=limit, folder=folder, activity=activity)
        )

    async def waiting(self, session: SessionId | None = None) -> Sequence[WaitingEscalation]:
        key = check_session_id(session) if session is not None else None
        return await self._database.read(lambda connection: stream.read_waiting(connection, key))

    async def last_row(self) -> int:
        return await stream.last_row(self._database)

    async def events_after(self, row: int, *, limit: int = 1000) -> Sequence[StreamedEvent]:
        return await stream.read_events_after(self._database, row, limit)

    def watch(self) -> AbstractContextManager[StoreWatch]:
        return self._news.watch()

    async def summary(self, session: SessionId) -> SessionSummary:
        key = check_session_id(session)
        if (tally := await self._tallies.call(key)) is None:
            raise not_found(key)
        return decode_state(tally, key).summary

    async def find(self, reference: str) -> SessionId:
        return await self._database.read(lambda connection: find(connection, reference))

    async def shares(self, tree: SessionId) -> Shares:
        return await self._shares.read(check_session_id(tree))

    async def change_shares(self, tree: SessionId, change: ChangeShares) -> Shares:
        return await self._shares.change(check_session_id(tree), change)

    async def search(self, text: str, *, limit: int = 20) -> Sequence[Passage]:
        words = search.query_tokens(text)
        await self._database.write(search.catch_up)
        return await self._database.read(
            lambda connection: search.find_passages(connection, words, max(limit, 0))
        )

    async def usage(self, *, since_day: str = "") -> Sequence[UsageTotal]:
        await self._database.write(usage.catch_up, is_repeatable=True)
        return await self._database.read(lambda connection: usage.read_totals(connection, since_day))

    async def session_usage(
        self, *, since_day: str = "", session: SessionId | None = None
    ) -> Sequence[UsageTotal]:
        key = check_session_id(session) if session is not None else None
        await self._database.write(usage.catch_up, is_repeatable=True)
        return await self._database.read(lambda connection: usage.read_parts(connection, since_day, key))

    async def delete(self, session: SessionId) -> None:
        await self._sweep(await self.remove(session, reason="deleted"))

    async def remove(self, session: SessionId, *, reason: str) -> frozenset[str]:
        key = check_session_id(session)
        now_ms = self._clock.now_ms()
        mentioned = await self._database.write(
            lambda connection: remove(connection, key, reason=reason, now_ms=now_ms, presence=self._presence)
        )
        await asyncio.to_thread(remove_session_files, self._home, key)
        return mentioned

    async def sweep(self, removed: frozenset[str] = frozenset()) -> int:
        before_ms = self._clock.now_ms() - 60 * 60 * 1000
        rows = await self._database.read(lambda connection: connection.fetch(SQL["settled_blobs"], before_ms))
        swept = await self._sweep(removed | {row["digest"].hex() for row in rows})
        return swept + await self.sweep_objects()

    async def verify(self, session: SessionId) -> Inspection:
        return await self._verify(check_session_id(session))

    async def verify_all(self) -> Sequence[Inspection]:
        listed = [line.id for line in await self.sessions()]
        if set(await self._database.read(inspection.journals)) - set(listed):
            await self.rebuild_index()
            listed = [line.id for line in await self.sessions()]
        return [await self._verify(session) for session in listed]

    async def rebuild_index(self) -> int:
        for derived in ("clear_search", "clear_usage"):
            await self._database.write(lambda connection, name=derived: connection.execute(SQL[name]))  # type: ignore[misc]
        found = await self._database.read(inspection.journals)
        for session in found:
            await self._database.write(partial(inspection.rebuild, session=session))
        return len(found)

    async def export_session(
        self, session: SessionId, path: Path, *, now_ms: int, sign: SignArchive | None = None
    ) -> ArchiveManifest:
        key = check_session_id(session)
        check_target(path)
        inspected = await self._inspect(key)
        name = (await self.summary(key)).name
        return await archive.export(self, inspected, path, name=name, now_ms=now_ms, sign=sign)

    async def import_session(
        self,
        path: Path,
        *,
        now_ms: int,
        prepare: PrepareArrival | None = None,
        limits: ArchiveLimits | None = None,
        find_signer: FindSigner | None = None,
    ) -> SessionId:
        stored: list[str] = []
        try:
            lines, recorded, signer = await archive.read_archive(self, path, limits, find_signer, stored)
            session = lines[-1].session
            await self._database.read(lambda connection: archive.check_absent(connection, session))
            # Files first: a session that is listed is complete, even if this process is killed here.
            arrival = await prepare(session, recorded) if prepare is not None else Arrival()
            if not arrival.workspace:
                arrival = msgspec.structs.replace(arrival, workspace=str(self._home.workspace(session)))
            await self._database.write(
                lambda connection: archive.insert_session(
                    connection, lines, recorded, arrival, now_ms, signer
                )
            )
        except BaseException:
            with suppress(HoldfastError):
                await self._sweep(frozenset(stored))
            raise
        self._news.recorded((session,))
        return session

    async def announce(self, role: str, *, key: str = "") -> None:
        self._presence.role, self._presence.key = role, key
        await self._database.read(self._presence.arrive)

    async def post_request(
        self, session: SessionId, body: bytes, *, id: str | None = None, post_jobs: PostJobs
    ) -> str:
        key, name = check_session_id(session), id or secrets.token_hex(12)
        new = NewRequest(id=name, session=key, body=body, post_jobs=post_jobs)
        if (problem := await self._posted.call(new)) is not None:
            raise problem
        self._news.recorded((key,), REQUESTS)
        return name

    async def in_transaction(self, within: Within) -> None:
        await self._database.write(within)

    async def requests(self, session: SessionId) -> Sequence[PostedRequest]:
        key = check_session_id(session)
        return await self._requests.call(key) or []

    async def requested(self, sessions: Sequence[SessionId]) -> Mapping[SessionId, Sequence[PostedRequest]]:
        rows = await self._database.read(lambda connection: connection.fetch(SQL["requests_of"], sessions))
        found: dict[SessionId, list[PostedRequest]] = {}
        for row in rows:
            posted = PostedRequest(id=row["id"], body=row["body"])
            found.setdefault(SessionId(row["session"]), []).append(posted)
        return found

    def watch_requests(self) -> AbstractContextManager[StoreWatch]:
        return self._news.watch(REQUESTS)

    async def remove_request(self, id: str) -> None:
        await self._removed.call(id)

    async def document(self, name: str) -> StoredDocument:
        row = await self._database.read(lambda connection: connection.fetchrow(SQL["document"], name))
        return StoredDocument() if row is None else StoredDocument(**dict(row))

    async def put_document(self, name: str, content: bytes, *, version: int) -> bool:
        query = SQL["replace_document"] if version else SQL["put_document"]
        written = await self._database.write(
            lambda connection: connection.fetchval(query, name, content, version)
        )
        return written is not None

    async def keep_api_key(self, key: ApiKey, hash: bytes) -> None:
        row = (key.id, key.principal, key.right, hash)
        await self._database.write(lambda connection: connection.execute(SQL["keep_api_key"], *row))

    async def api_key(self, id: str) -> tuple[ApiKey, bytes] | None:
        row = await self._database.read(lambda connection: connection.fetchrow(SQL["api_key"], id))
        return None if row is None else (_api_key(row), row["hash"])

    async def api_keys(self) -> Sequence[ApiKey]:
        rows = await self._database.read(lambda connection: connection.fetch(SQL["api_keys"]))
        return [_api_key(row) for row in rows]

    async def remove_api_key(self, id: str) -> bool:
        removed = await self._database.write(
            lambda connection: connection.fetchval(SQL["remove_api_key"], id)
        )
        return removed is not None

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await asyncio.gather(*self._taking.values(), return_exceptions=True)
            for journal in tuple(self._journals.values()):
                await journal.release()
            await self._writer.close()
            await self._news.close()
            await self._presence.stop()
            await self._database.write(self._presence.leave)  # once: a server that is gone is not waited for
        except StoreUnavailable:
            pass  # a lease that cannot be released ends with the presence
        finally:
            await self._news.close()
            await self._presence.stop()
            await self._database.close()

    async def _taken(self, session: SessionId, take: Callable[[], Awaitable[Taken]]) -> Taken:
        """Take a lease. If the caller is cancelled, the lease is taken nevertheless and then released."""
        while (earlier := self._taking.get(session)) is not None:
            await asyncio.wait([earlier])
        is_wanted = True

        async def work() -> Taken:
            try:
                journal = await take()
                if journal is not None and not is_wanted:
                    await journal.release()
                return journal
            finally:
                del self._taking[session]

        task = asyncio.create_task(work())
        self._taking[session] = task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            is_wanted = False
            task.add_done_callback(_retrieve)
            raise

    async def _open(self, session: SessionId) -> PostgresJournal:
        now_ms = self._clock.now_ms()

        async def take(connection: asyncpg.Connection) -> int:
            patience = timedelta(seconds=self._presence.seconds)
            await require_session(connection, session)
            known = self._journals.get(session)
            if known is None or known.is_released:
                fence = await connection.fetchval(
                    SQL["take_lease"], session, self._presence.id, now_ms, patience
                )
                if fence is not None:
                    return int(fence)
            holder = await holder_of(connection, session, self._presence)
            own = LeaseHolder(pid=self._presence.pid, host=self._presence.host, since_ms=now_ms)
            raise held(session, holder or own, now_ms)

        fence = await self._database.write(take, is_repeatable=True)
        try:
            head, history = await self._database.read(lambda connection: load(connection, session))
        except BaseException as problem:
            await self._release(session, fence)
            if isinstance(problem, JournalDamaged):
                await self._database.write(lambda connection: inspection.mark_damaged(connection, session))
            raise
        return self._journal(session, fence, head, history)

    async def _retake(self, journal: PostgresJournal) -> PostgresJournal | None:
        if not journal.is_released or journal.is_uncertain:
            return None
        head = journal.head
        fence = await self._retaken.call((journal.session, journal.fence, head.seq, head.hash))
        if fence is None:
            return None
        journal.continue_with(fence)
        return journal

    async def _create(
        self, opened: SessionOpened, session: SessionId | None, history: Sequence[RecordedEvent]
    ) -> PostgresJournal:
        while True:
            key = check_session_id(session) if session is not None else new_session_id(self._clock)
            new = NewSession(key, opened, history=history, at_ms=self._clock.now_ms(), redact=self._redact)
            try:
                return await self._taken(key, partial(self._insert_new, new))
            except IdTaken:
                if session is not None:
                    raise

    async def _insert_new(self, new: NewSession) -> PostgresJournal:
        try:
            await self._database.write(
                lambda connection: new.create(connection, self._presence.id), is_repeatable=True
            )
        except asyncpg.UniqueViolationError as problem:  # a name or id that was taken without its lock
            raise IdTaken(f"there is already a session {new.session!r}") from problem
        self._news.recorded((new.session,))
        return self._journal(new.session, 1, new.head, new.history)

    def _journal(
        self, session: SessionId, fence: int, head: Head, history: Sequence[RecordedEvent]
    ) -> PostgresJournal:
        journal = PostgresJournal(
            session=session,
            fence=fence,
            history=history,
            head=head,
            writer=self._writer,
            clock=self._clock,
            redact=self._redact,
            release=partial(self._release, session),
        )
        self._journals[session] = journal
        return journal

    async def _release(self, session: SessionId, fence: int) -> None:
        with suppress(StoreUnavailable):  # then the lease ends when this process is not seen any more
            await self._released.call((session, fence))

    async def _release_some(
        self, leases: Sequence[tuple[SessionId, int]]
    ) -> Mapping[tuple[SessionId, int], None]:
        columns = ([session for session, _ in leases], [fence for _, fence in leases])
        await self._database.read(
            lambda connection: connection.execute(SQL["release_leases"], *columns, self._presence.id)
        )
        return {}

    async def _retake_some(
        self, ends: Sequence[tuple[SessionId, int, int, bytes]]
    ) -> Mapping[tuple[SessionId, int, int, bytes], int]:
        columns = [list(column) for column in zip(*ends, strict=True)]
        rows = await self._database.read(
            lambda connection: connection.fetch(
                SQL["retake_leases"], self._presence.id, self._clock.now_ms(), *columns
            )
        )
        fences = {row["session"]: row["fence"] for row in rows}
        return {end: fences[end[0]] for end in ends if end[0] in fences}

    async def _tallies_of(self, sessions: Sequence[SessionId]) -> Mapping[SessionId, bytes]:
        rows = await self._database.read(lambda connection: connection.fetch(SQL["tallies_of"], sessions))
        return {SessionId(row["id"]): row["tally"] for row in rows}

    async def _post_some(self, requests: Sequence[NewRequest]) -> Mapping[NewRequest, Exception]:
        """Post requests in one transaction. Returns why some were not posted."""
        try:
            known = await self._database.write(lambda connection: post_all(connection, requests))
        except StoreUnavailable:
            raise
        except Exception as problem:
            if len(requests) == 1:
                return {requests[0]: problem}
            # What one of them cannot do must not affect the others.
            alone = [await self._post_some((each,)) for each in requests]
            return {each: problem for problems in alone for each, problem in problems.items()}
        return {each: not_found(each.session) for each in requests if each.session not in known}

    async def _remove_requests(self, ids: Sequence[str]) -> Mapping[str, None]:
        await self._database.read(
            lambda connection: connection.execute(SQL["remove_some_requests"], list(ids))
        )
        return {}

    async def _sweep(self, digests: frozenset[str] | set[str]) -> int:
        patience = timedelta(seconds=self._presence.seconds)
        is_idle = not await self._database.read(
            lambda connection: connection.fetchval(SQL["others_alive"], self._presence.id, patience)
        )
        return await self.sweep_blobs(frozenset(digests), is_idle=is_idle)

    async def _inspect(self, session: SessionId) -> inspection.InspectedJournal:
        async def look(connection: asyncpg.Connection) -> inspection.InspectedJournal:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await inspection.inspect(connection, session)

        return await self._database.read(look)

    async def _verify(self, session: SessionId) -> Inspection:
        inspected = await self._inspect(session)
        found = inspected.found
        if not found.is_intact:
            await self._database.write(lambda connection: inspection.mark_damaged(connection, session))
        lost = await self.damaged_objects(row.body for row in inspected.rows)
        return msgspec.structs.replace(found, lost=lost)


def _api_key(row: asyncpg.Record) -> ApiKey:
    return ApiKey(id=row["id"], principal=row["principal"], right=row["may"])


def _retrieve(task: "asyncio.Task[Taken]") -> None:
    """Nobody waits for the result any more."""
    if not task.cancelled():
        task.exception()
