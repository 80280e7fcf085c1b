"""The blob half of the SQLite store, and access to the reader and the writer, which both halves share."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import msgspec

from holdfast.core import Clock
from holdfast.core.errors import JournalDamaged
from holdfast.store.blobs.copy_out import Reflinker, StoredBlob
from holdfast.store.blobs.ingest import BlobRow, BlobWriter
from holdfast.store.blobs.store import Blobs, NewBlob
from holdfast.store.home import Home
from holdfast.store.sqlite.deletion import find_orphans, sweep
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.rows import Connection
from holdfast.store.sqlite.transaction import Transaction, Work
from holdfast.store.sqlite.writer import Writer

Result = TypeVar("Result")


_LARGE_BYTES = 256 << 10
"""Hashing less takes under a millisecond."""


class SqliteBlobStore:
    """Blobs, stored under their SHA-256: small ones in the database, large ones in files."""

    def __init__(self, *, home: Home, clock: Clock, reader: Reader, writer: Writer) -> None:
        self._home = home
        self._clock = clock
        self._reader = reader
        self._writer = writer
        self._blobs = Blobs(home.blobs, clock)
        self._reflinker = Reflinker()

    @property
    def home(self) -> Home:
        """The home that contains this store."""
        return self._home

    @property
    def blobs(self) -> Blobs:
        """The blobs. For this package."""
        return self._blobs

    def _is_idle(self, connection: Connection) -> bool:
        """Whether no session is open anywhere."""
        return False

    async def reading(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a read on the reader's thread, in one transaction. For this package."""
        return await self._reader.read(work)

    async def writing(self, work: Work[Result]) -> Result:
        """Run a write; it happens even if the wait is cancelled. For this package."""
        try:
            return await self._writer.submit(work)
        except msgspec.MsgspecError as problem:
            raise JournalDamaged(
                "a row of the session list cannot be read",
                hint="rebuild the list with: holdfast rebuild-index",
            ) from problem

    async def put_blob(self, content: bytes) -> str:
        is_large = len(content) > _LARGE_BYTES
        draft = (
            await asyncio.to_thread(self._blobs.draft, content) if is_large else self._blobs.draft(content)
        )
        await self.writing(partial(self._insert, draft))
        return draft.digest

    async def blob(self, digest: str) -> bytes:
        return await self.reading(lambda connection: self._blobs.read(connection, digest))

    @asynccontextmanager
    async def ingest(self) -> AsyncIterator[BlobWriter]:
        ingest = BlobWriter(self._blobs, self._reflinker)
        try:
            yield ingest
            rows = await asyncio.to_thread(ingest.finish)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(ingest.discard))
            raise
        if rows:
            await self.writing(partial(self._insert_rows, rows))

    async def open_blobs(self, digests: Sequence[str]) -> Mapping[str, StoredBlob]:
        def locate(connection: sqlite3.Connection) -> dict[str, StoredBlob]:
            return {
                digest: StoredBlob(digest, self._blobs.locate(connection, digest), self._reflinker)
                for digest in digests
            }

        return await self.reading(locate)

    async def sweep_blobs(self, digests: frozenset[str]) -> int:
        """Delete those of the blobs that nothing refers to, and return how many. For this package."""
        since_ms = self._clock.now_ms()
        orphans = await self.reading(partial(find_orphans, self._blobs, digests))
        if orphans:
            await self.writing(partial(sweep, self._blobs, orphans, since_ms, self._is_idle))
        return len(orphans)

    def _insert(self, draft: NewBlob, transaction: Transaction) -> None:
        self._blobs.write(transaction, draft)

    def _insert_rows(self, rows: Sequence[BlobRow], transaction: Transaction) -> None:
        for row in rows:
            is_in_file = self._blobs.insert_row(transaction, row.digest, row.size, row.content)
            if row.content is None and not is_in_file:  # the blob already is a row and stays one
                file = self._blobs.path(row.digest)
                transaction.after_commit.append(partial(file.unlink, missing_ok=True))
