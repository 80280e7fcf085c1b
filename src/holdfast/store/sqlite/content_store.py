"""The contents of the embedded store: the half of it that `Contents` describes, and the two threads that both halves use."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import msgspec

from holdfast.core import Clock
from holdfast.core.errors import JournalDamaged
from holdfast.store.blobs.copy_out import Content, Reflinker
from holdfast.store.blobs.ingest import BlobWriter, Row
from holdfast.store.blobs.store import Blobs, Draft
from holdfast.store.home import Home
from holdfast.store.sqlite.deletion import find_orphans, sweep
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.transaction import Transaction, Work
from holdfast.store.sqlite.writer import Writer

Result = TypeVar("Result")


class SqliteContentStore:
    """Contents under their SHA-256: small ones in the database, large ones in files."""

    def __init__(self, *, home: Home, clock: Clock, reader: Reader, writer: Writer) -> None:
        self._clock = clock
        self._reader = reader
        self._writer = writer
        self._blobs = Blobs(home.blobs, clock)
        self._cloner = Reflinker()

    @property
    def blobs(self) -> Blobs:
        """Where contents lie. For this package."""
        return self._blobs

    async def reading(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Have something read, at one point in time, by the reader's thread. For this package."""
        return await self._reader.read(work)

    async def writing(self, work: Work[Result]) -> Result:
        """Have something written; it happens even when the wait is cancelled. For this package."""
        try:
            return await self._writer.submit(work)
        except msgspec.MsgspecError as problem:
            raise JournalDamaged(
                "a line of the list of sessions cannot be read", hint="holdfast rebuild-index makes it anew"
            ) from problem

    async def put_blob(self, content: bytes) -> str:
        draft = self._blobs.draft(content)
        await self.writing(partial(self._keep, draft))
        return draft.digest

    async def blob(self, digest: str) -> bytes:
        return await self.reading(lambda connection: self._blobs.read(connection, digest))

    @asynccontextmanager
    async def intake(self) -> AsyncIterator[BlobWriter]:
        intake = BlobWriter(self._blobs, self._cloner)
        try:
            yield intake
            rows = await asyncio.to_thread(intake.settle)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(intake.abandon))
            raise
        if rows:
            await self.writing(partial(self._keep_rows, rows))

    async def contents(self, digests: Sequence[str]) -> Mapping[str, Content]:
        def held(connection: sqlite3.Connection) -> dict[str, Content]:
            return {
                digest: Content(digest, self._blobs.held(connection, digest), self._cloner)
                for digest in digests
            }

        return await self.reading(held)

    async def sweep_contents(self, digests: frozenset[str]) -> int:
        """Remove those of the contents that nothing mentions; how many. For this package."""
        orphans = await self.reading(partial(find_orphans, self._blobs, digests))
        if orphans:
            await self.writing(partial(sweep, self._blobs, orphans, self._clock.now_ms()))
        return len(orphans)

    def _keep(self, draft: Draft, transaction: Transaction) -> None:
        self._blobs.write(transaction, draft)

    def _keep_rows(self, rows: Sequence[Row], transaction: Transaction) -> None:
        for row in rows:
            is_in_file = self._blobs.note(transaction, row.digest, row.size, row.content)
            if row.content is None and not is_in_file:  # it was a row already, and stays one
                file = self._blobs.path(row.digest)
                transaction.after_commit.append(partial(file.unlink, missing_ok=True))
