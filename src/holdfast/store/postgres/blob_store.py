"""The blob half of the PostgreSQL store: contents as rows, sent and fetched many at a time; large ones as objects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg

from holdfast.core import Clock, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged, StoreUnavailable
from holdfast.store.blobs.copy_out import read_span, write_span
from holdfast.store.blobs.references import digests_in
from holdfast.store.contract import BlobInfo, Hasher
from holdfast.store.postgres.database import SQL, Database
from holdfast.store.postgres.objects import BlobObjects
from holdfast.store.postgres.spool import Span, Spool

BATCH_BYTES = 4 * 1024 * 1024
MAX_BLOB_BYTES = 512 * 1024 * 1024
"""PostgreSQL holds at most 1 GB in a value."""
ORPHAN_GRACE_MS = 60 * 60 * 1000
"""An unreferenced blob is kept this long, because the event that refers to it may be about to be written."""

ORPHAN_AGE = timedelta(days=1)
"""An object without a row is kept this long, by the clock of the object store, because its row may be about to be written."""


class PostgresIngest:
    """Blobs that are being stored, in any thread."""

    def __init__(self) -> None:
        self.spool = Spool()
        self.taken: dict[str, bytes | Span] = {}
        self.sizes: dict[str, int] = {}

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
        """Store a span of an open file, or what there is of it."""
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        digest = digest_bytes(content)
        if digest not in self.taken:
            self.taken[digest] = self.spool.put(content)
            self.sizes[digest] = len(content)
        return BlobInfo(digest=digest, size=len(content))


@dataclass(frozen=True, slots=True)
class FetchedBlob:
    """A blob that was fetched and can be copied into a file."""

    digest: str
    kept: bytes | Span
    spool: Spool

    def copy_to(self, target: int, place: int = 0) -> int:
        """Write the blob to an open file at an offset, in any thread, and return its size. Raises JournalDamaged."""
        content = self.spool.get(self.kept)
        if digest_bytes(content) != self.digest:
            raise JournalDamaged(f"the blob {self.digest!r} was changed")
        write_span(target, place, content)
        return len(content)


class PostgresBlobStore:
    """Blobs, stored once each under their SHA-256."""

    def __init__(self, *, database: Database, clock: Clock, objects: BlobObjects | None = None) -> None:
        self._database = database
        self._clock = clock
        self._objects = objects

    async def put_blob(self, content: bytes) -> str:
        digest = digest_bytes(content)
        _check_size(digest, len(content))
        if self._is_object(len(content)):
            await self._put_objects({digest: len(content)}, lambda _: bytes(content))
            return digest
        row = ([bytes.fromhex(digest)], [len(content)], [bytes(content)])
        now_ms = self._clock.now_ms()
        await self._database.read(lambda connection: connection.execute(SQL["put_blobs"], *row, now_ms))
        return digest

    async def blob(self, digest: str) -> bytes:
        key = _key(digest)
        rows = await self._database.read(lambda connection: connection.fetch(SQL["get_blobs"], [key]))
        if not rows:
            raise _missing(digest)
        if rows[0]["content"] is None:
            return await self._object(digest.lower())
        content = bytes(rows[0]["content"])
        if digest_bytes(content) != digest.lower():
            raise JournalDamaged(f"the blob {digest!r} was changed")
        return content

    @asynccontextmanager
    async def ingest(self) -> AsyncIterator[PostgresIngest]:
        ingest = PostgresIngest()
        yield ingest
        for digest, size in ingest.sizes.items():
            _check_size(digest, size)
        large = {digest: size for digest, size in ingest.sizes.items() if self._is_object(size)}
        if large:
            await self._put_objects(large, lambda digest: ingest.spool.get(ingest.taken[digest]))
        small = {digest: kept for digest, kept in ingest.taken.items() if digest not in large}
        if small:
            await self._database.write(lambda connection: self._insert(connection, ingest, small))

    async def open_blobs(self, digests: Sequence[str]) -> Mapping[str, FetchedBlob]:
        keys = [_key(digest) for digest in dict.fromkeys(digests)]
        spool = Spool()
        found: dict[str, FetchedBlob] = {}
        async for digest, content in self.fetch(keys):
            found[digest] = FetchedBlob(digest, await _put(spool, content), spool)
        for digest in digests:
            if digest.lower() not in found:
                await self.blob(digest)  # says what is wrong with it
                raise _missing(digest)
        return {digest: found[digest.lower()] for digest in digests}

    async def fetch(self, keys: Sequence[bytes]) -> AsyncIterator[tuple[str, bytes]]:
        """Fetch those of many blobs that there are, unverified, a few at a time. For this package."""
        sizes = await self._database.read(lambda connection: connection.fetch(SQL["blob_sizes"], keys))
        for batch in _batches((bytes(row["digest"]), row["size"]) for row in sizes):
            for digest, content in await self._get(batch):
                if content is None and self._objects is not None:
                    content = await self._objects.get(digest.hex())
                if content is not None:
                    yield digest.hex(), bytes(content)

    async def _get(self, keys: list[bytes]) -> Sequence[asyncpg.Record]:
        rows: Sequence[asyncpg.Record] = await self._database.read(
            lambda connection: connection.fetch(SQL["get_blobs"], keys)
        )
        return rows

    async def referenced_blobs(self, bodies: Iterable[bytes]) -> set[str]:
        """Find the stored blobs that these events refer to, directly or through other blobs. For this package."""
        return await self.closure(set[str]().union(*(digests_in(body) for body in bodies)))

    async def closure(self, digests: set[str]) -> set[str]:
        """Those of the digests that are blobs, and the blobs that they refer to. For this package."""
        found: set[str] = set()
        pending = set(digests)
        while pending:
            keys, pending = [bytes.fromhex(digest) for digest in pending], set()
            async for digest, mentioned in self._mentions(keys):
                found.add(digest)
                pending |= mentioned
            pending -= found
        return found

    async def _mentions(self, keys: Sequence[bytes]) -> AsyncIterator[tuple[str, set[str]]]:
        """Those of many blobs that there are, with the blobs that each mentions."""
        sizes = await self._database.read(lambda connection: connection.fetch(SQL["blob_sizes"], keys))
        for batch in _batches((bytes(row["digest"]), row["size"]) for row in sizes):
            rows = await self._database.read(
                lambda connection, batch=batch: connection.fetch(SQL["blob_contents"], batch)  # type: ignore[misc]
            )
            for digest, content, mentions in rows:
                if content is None:
                    yield digest.hex(), {each.hex() for each in mentions or ()}
                else:
                    yield digest.hex(), digests_in(content)

    async def damaged_objects(self, bodies: Iterable[bytes]) -> tuple[str, ...]:
        """What is wrong with the objects that these events refer to, a line each. For this package."""
        if self._objects is None:
            return ()
        keys = [bytes.fromhex(digest) for digest in await self.referenced_blobs(bodies)]
        rows = await self._database.read(lambda connection: connection.fetch(SQL["objects_among"], keys))
        found = [
            (row["digest"].hex(), await self._objects.problem_of(row["digest"].hex(), row["size"]))
            for row in rows
        ]
        return tuple(f"{digest} {problem}" for digest, problem in found if problem)

    async def sweep_blobs(self, digests: frozenset[str], *, is_idle: bool) -> int:
        """Delete those of the blobs that nothing refers to, and return how many. For this package."""
        since_ms = self._clock.now_ms()
        candidates = await self.closure(set(digests))
        if not candidates:
            return 0
        orphans = candidates - await self.closure(await self._database.read(_all_references))
        after_ms = since_ms - 1 if is_idle else since_ms - ORPHAN_GRACE_MS
        keys = [bytes.fromhex(digest) for digest in orphans]
        await self._database.write(lambda connection: self._drop(connection, keys, after_ms))
        return len(orphans)

    async def sweep_objects(self) -> int:
        """Remove objects that never got a row, because the process that stored them died. For this package."""
        if self._objects is None:
            return 0
        before = datetime.now(UTC) - ORPHAN_AGE
        old = [each.digest async for each in self._objects.all() if each.modified < before]
        keys = [bytes.fromhex(digest) for digest in old]
        rows = await self._database.read(lambda connection: connection.fetch(SQL["blob_sizes"], keys))
        orphans = set(old) - {row["digest"].hex() for row in rows}
        for digest in sorted(orphans):
            await self._database.write(partial(self._drop_orphan, digest=digest))
        return len(orphans)

    async def _drop_orphan(self, connection: asyncpg.Connection, digest: str) -> None:
        assert self._objects is not None
        await connection.execute(SQL["own_object"], bytes.fromhex(digest))
        if not await connection.fetch(SQL["blob_sizes"], [bytes.fromhex(digest)]):
            await self._objects.remove(digest)

    async def _drop(self, connection: asyncpg.Connection, keys: list[bytes], after_ms: int) -> None:
        """Remove rows, and the objects of those that were removed."""
        large = [row["digest"] for row in await connection.fetch(SQL["objects_among"], keys)]
        for key in large:
            await connection.execute(SQL["own_object"], key)
        dropped = {row["digest"] for row in await connection.fetch(SQL["drop_blobs"], keys, after_ms)}
        for key in large:
            if key in dropped and self._objects is not None:
                await self._objects.remove(key.hex())

    def _is_object(self, size: int) -> bool:
        return self._objects is not None and size > self._objects.large_bytes

    async def _object(self, digest: str) -> bytes:
        if self._objects is None:
            raise StoreUnavailable(
                f"the blob {digest!r} is an object, and this store has no place for objects",
                hint="name it with: holdfast store migrate URL --blobs PLACE",
            )
        content = await self._objects.get(digest)
        if content is None:
            raise self._objects.damaged(digest, "is missing")
        if digest_bytes(content) != digest:
            raise self._objects.damaged(digest, "was changed, or is not complete")
        return content

    async def _put_objects(self, sizes: Mapping[str, int], content: Callable[[str], bytes]) -> None:
        """Store objects and their rows. One that is there already is not sent again."""
        assert self._objects is not None
        mentions: dict[str, list[bytes]] = {}
        for digest, size in sizes.items():
            whole = await asyncio.to_thread(content, digest)
            mentions[digest] = [bytes.fromhex(each) for each in sorted(digests_in(whole))]
            if not await self._objects.has(digest, size):
                await self._objects.put(digest, whole)

        async def insert(connection: asyncpg.Connection) -> str | None:
            """Write the rows; returns an object that a sweep has removed in the meantime."""
            assert self._objects is not None
            for digest in sorted(sizes):
                await connection.execute(SQL["use_object"], bytes.fromhex(digest))
            for digest, size in sizes.items():
                if not await self._objects.has(digest, size):
                    return digest
            for digest, size in sorted(sizes.items()):
                row = (bytes.fromhex(digest), size, mentions[digest], self._clock.now_ms())
                await connection.execute(SQL["put_object"], *row)
            return None

        while (gone := await self._database.write(insert, is_repeatable=True)) is not None:
            await self._objects.put(gone, await asyncio.to_thread(content, gone))

    async def _insert(
        self, connection: asyncpg.Connection, ingest: PostgresIngest, taken: Mapping[str, bytes | Span]
    ) -> None:
        now_ms = self._clock.now_ms()
        # In one order, so that two processes that store the same blobs do not wait for each other in a circle.
        known = await connection.fetch(
            SQL["touch_blobs"], sorted(bytes.fromhex(digest) for digest in taken), now_ms
        )
        there = {row["digest"].hex() for row in known}
        missing = sorted(digest for digest in taken if digest not in there)
        for batch in _batches((bytes.fromhex(digest), ingest.sizes[digest]) for digest in missing):
            contents = [ingest.spool.get(taken[key.hex()]) for key in batch]
            sizes = [len(content) for content in contents]
            await connection.execute(SQL["put_blobs"], batch, sizes, contents, now_ms)


async def _all_references(connection: asyncpg.Connection) -> set[str]:
    found: set[str] = set()
    async with connection.transaction(readonly=True):
        async for row in connection.cursor(SQL["all_bodies"], prefetch=1000):
            found |= digests_in(row["body"])
    return found


async def _put(spool: Spool, content: bytes) -> bytes | Span:
    if len(content) < 64 * 1024:
        return spool.put(content)
    return await asyncio.to_thread(spool.put, content)


def _batches(sized: Iterable[tuple[bytes, int]]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    total = 0
    for key, size in sized:
        if batch and (total + size > BATCH_BYTES or len(batch) >= 1000):
            yield batch
            batch, total = [], 0
        batch.append(key)
        total += size
    if batch:
        yield batch


def _key(digest: str) -> bytes:
    try:
        return bytes.fromhex(digest)
    except ValueError:
        raise InvalidInput(f"{digest!r} is not a SHA-256") from None


def _missing(digest: str) -> JournalDamaged:
    return JournalDamaged(f"the blob {digest!r} is missing")


def _check_size(digest: str, size: int) -> None:
    if size > MAX_BLOB_BYTES:
        raise InvalidInput(
            f"the blob {digest!r} has {size} bytes, and this store takes {MAX_BLOB_BYTES}",
            hint="leave the file out of the workspace",
        )
