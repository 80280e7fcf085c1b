"""The blob half of the PostgreSQL store: contents as rows, sent and fetched many at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from holdfast.core import Clock, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged
from holdfast.store.blobs.copy_out import read_span, write_span
from holdfast.store.blobs.references import digests_in
from holdfast.store.contract import BlobInfo, Hasher
from holdfast.store.postgres.database import SQL, Database
from holdfast.store.postgres.spool import Span, Spool

BATCH_BYTES = 4 * 1024 * 1024
MAX_BLOB_BYTES = 512 * 1024 * 1024
"""PostgreSQL holds at most 1 GB in a value."""
ORPHAN_GRACE_MS = 60 * 60 * 1000
"""An unreferenced blob is kept this long, because the event that refers to it may be about to be written."""


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

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put_blob(self, content: bytes) -> str:
        digest = digest_bytes(content)
        _check_size(digest, len(content))
        row = ([bytes.fromhex(digest)], [len(content)], [bytes(content)])
        now_ms = self._clock.now_ms()
        await self._database.read(lambda connection: connection.execute(SQL["put_blobs"], *row, now_ms))
        return digest

    async def blob(self, digest: str) -> bytes:
        key = _key(digest)
        rows = await self._database.read(lambda connection: connection.fetch(SQL["get_blobs"], [key]))
        if not rows:
            raise _missing(digest)
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
        if ingest.taken:
            await self._database.write(lambda connection: self._insert(connection, ingest))

    async def open_blobs(self, digests: Sequence[str]) -> Mapping[str, FetchedBlob]:
        keys = [_key(digest) for digest in dict.fromkeys(digests)]
        spool = Spool()
        found: dict[str, FetchedBlob] = {}
        async for digest, content in self.fetch(keys):
            found[digest] = FetchedBlob(digest, await _put(spool, content), spool)
        for digest in digests:
            if digest.lower() not in found:
                raise _missing(digest)
        return {digest: found[digest.lower()] for digest in digests}

    async def fetch(self, keys: Sequence[bytes]) -> AsyncIterator[tuple[str, bytes]]:
        """Fetch those of many blobs that there are, unverified, a few at a time. For this package."""
        sizes = await self._database.read(lambda connection: connection.fetch(SQL["blob_sizes"], keys))
        for batch in _batches((bytes(row["digest"]), row["size"]) for row in sizes):
            for digest, content in await self._get(batch):
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
            async for digest, content in self.fetch(keys):
                found.add(digest)
                pending |= digests_in(content)
            pending -= found
        return found

    async def sweep_blobs(self, digests: frozenset[str], *, is_idle: bool) -> int:
        """Delete those of the blobs that nothing refers to, and return how many. For this package."""
        since_ms = self._clock.now_ms()
        candidates = await self.closure(set(digests))
        if not candidates:
            return 0
        orphans = candidates - await self.closure(await self._database.read(_all_references))
        after_ms = since_ms - 1 if is_idle else since_ms - ORPHAN_GRACE_MS
        keys = [bytes.fromhex(digest) for digest in orphans]
        await self._database.write(lambda connection: connection.execute(SQL["drop_blobs"], keys, after_ms))
        return len(orphans)

    async def _insert(self, connection: asyncpg.Connection, ingest: PostgresIngest) -> None:
        now_ms = self._clock.now_ms()
        # In one order, so that two processes that store the same blobs do not wait for each other in a circle.
        known = await connection.fetch(
            SQL["touch_blobs"], sorted(bytes.fromhex(digest) for digest in ingest.taken), now_ms
        )
        there = {row["digest"].hex() for row in known}
        missing = sorted(digest for digest in ingest.taken if digest not in there)
        for batch in _batches((bytes.fromhex(digest), ingest.sizes[digest]) for digest in missing):
            contents = [ingest.spool.get(ingest.taken[key.hex()]) for key in batch]
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
