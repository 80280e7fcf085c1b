"""The reader: one thread with a connection of its own, so that the event loop never waits for the disk."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.core.errors import HoldfastError, StoreUnavailable

Result = TypeVar("Result")


class Reader:
    """Owns the one reading connection of a store."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        explain: Callable[[sqlite3.Error | OSError], HoldfastError],
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._connection: sqlite3.Connection | None = None
        self._is_closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-reader")

    async def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Have something read, at one point in time."""
        return await self.call(lambda: self._read(work))

    async def call(self, work: Callable[[], Result]) -> Result:
        """Have something done in this thread that needs no connection."""
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """End the connection and the thread. Idempotent."""
        if not self._is_closed:
            await self.call(self._disconnect)
            self._is_closed = True
            self._thread.shutdown()

    def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._connection.execute("BEGIN")
            result = work(self._connection)
            self._connection.execute("ROLLBACK")
        except BaseException as problem:
            # What failed may be in the middle of a statement, which would keep the connection at this point in time.
            self._disconnect()
            if isinstance(problem, sqlite3.Error | OSError):
                raise self._explain(problem) from problem
            raise
        return result

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
