"""Presence: the row that says that this process is alive, by the clock of the database."""

import asyncio
import os
import secrets
import socket

import asyncpg

from holdfast.core import end_task
from holdfast.store.postgres.database import LOST, SQL, close_quickly, connect

BEAT_SECONDS = 1.0
PRESENCE_SECONDS = 4.0
"""A process that was not seen for this long is dead, and its leases are free."""


class Presence:
    """Beats for all leases of one store. Each start has its own id, so a restarted process is not taken for its past."""

    def __init__(self, url: str, *, version: str, seconds: float = PRESENCE_SECONDS) -> None:
        self._url = url
        self.host = socket.gethostname()
        self.pid = os.getpid()
        self.id = f"{self.host}-{self.pid}-{secrets.token_hex(6)}"
        self.seconds = seconds
        self._version = version
        self.role = ""
        """What this process does with the store, for an operator."""
        self.key = ""
        """The id of the key that this process signs snapshots with."""
        self._task: asyncio.Task[None] | None = None

    async def arrive(self, connection: asyncpg.Connection) -> None:
        """Insert the row. Idempotent."""
        await connection.execute(SQL["forget_dead"])
        await connection.execute(SQL["beat"], *self._row())

    def start(self) -> None:
        """Beat until `stop`."""
        self._task = asyncio.create_task(self._run(), name="holdfast-presence")

    async def stop(self) -> None:
        """Stop beating; the row stays until `leave`."""
        if self._task is not None:
            await end_task(self._task)
            self._task = None

    async def leave(self, connection: asyncpg.Connection) -> None:
        """Remove the row, which ends every lease that was not released."""
        await connection.execute(SQL["leave"], self.id)

    def _row(self) -> tuple[str, str, int, str, str, str]:
        return self.id, self.host, self.pid, self._version, self.role, self.key

    async def _run(self) -> None:
        # A connection of its own: a beat must not wait behind a slow read.
        connection: asyncpg.Connection | None = None
        try:
            while True:
                await asyncio.sleep(min(BEAT_SECONDS, self.seconds / 4))
                try:
                    if connection is None:
                        connection = await connect(self._url, command_seconds=self.seconds / 2)
                    await connection.execute(SQL["beat"], *self._row())
                except (*LOST, asyncpg.PostgresError):
                    if connection is not None:
                        connection.terminate()
                    connection = None  # the next beat connects again; the fence protects in the meantime
        finally:
            if connection is not None:
                await close_quickly(connection)
