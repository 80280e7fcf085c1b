"""The reader: one thread with its own connection, so that the event loop never waits for the disk."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.core.errors import HoldfastError, StoreUnavailable

Result = TypeVar("Result")


class Reader:
    """Owns the read connection of a store."""

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
        """Run a read in one transaction."""
        return await self.call(lambda: self._read(work))

    async def call(self, work: Callable[[], Result]) -> Result:
        """Run something on this thread without a connection."""
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Close the connection and end the thread. Idempotent."""
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
            # An unfinished statement would keep the connection in its old transaction.
            self._disconnect()
            if isinstance(problem, sqlite3.Error | OSError):
                raise self._explain(problem) from problem
            raise
        return result

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
