"""The databases of a test run, and the server behind them."""

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from holdfast.store.postgres.migrations import migrate
from holdfast.worker import install_dispatch

_KEPT = ("migration", "place_offset", "tenant")
"""Tables that a migration fills."""
_ROOT = Path(__file__).parents[3]


class Databases:
    """Hands out empty databases with the newest schema and the queue, one to a test at a time; a used one is emptied and not created again."""

    def __init__(self, url: str, *, owner: str) -> None:
        self._url = url
        self._owner = owner
        self._created = 0
        self._free: list[str] = []
        self._blank: set[str] = set()
        """Without the schema or the queue: not handed out again."""

    async def take(self) -> str:
        """The address of an empty database."""
        if self._free:
            name = self._free.pop()
            await self._empty(name)
        else:
            self._created += 1
            name = f"test_{self._owner}_{self._created}"
            await self._create(name)
        return self.address(name)

    def give_back(self, address: str) -> None:
        """Return a database after a test."""
        name = urlsplit(address).path[1:]
        if name not in self._blank:
            self._free.append(name)

    async def drop(self) -> None:
        """Drop what was created: for a server that outlives this run."""
        connection = await asyncpg.connect(self._url)
        for number in range(1, self._created + 1):
            await connection.execute(f"DROP DATABASE IF EXISTS test_{self._owner}_{number} WITH (FORCE)")
        await connection.close()

    def address(self, name: str) -> str:
        """The address of a database of this server."""
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))

    async def take_blank(self) -> str:
        """The address of a database without our schema."""
        address = await self.take()
        self._blank.add(urlsplit(address).path[1:])
        connection = await asyncpg.connect(address)
        await connection.execute("SET client_min_messages = warning; DROP SCHEMA holdfast CASCADE")
        await connection.close()
        return address

    async def _create(self, name: str) -> None:
        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute(f"CREATE DATABASE {name}")
        finally:
            await connection.close()
        await migrate(self.address(name))
        await install_dispatch(self.address(name))

    async def _empty(self, name: str) -> None:
        connection = await asyncpg.connect(
            self.address(name), server_settings={"search_path": "holdfast", "client_min_messages": "warning"}
        )
        try:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'")
            names = [f'DELETE FROM "{row[0]}"' for row in tables if row[0] not in _KEPT]
            names.append("DELETE FROM tenant WHERE name <> 'default'")
            names.append("DELETE FROM place_offset WHERE tenant <> 'default'")
            await connection.execute(";".join(names))
        finally:
            await connection.close()


@contextmanager
def shared_server(run: str) -> Iterator[str]:
    """The address of the server of a test run; the first process that asks starts it."""
    note = Path(tempfile.gettempdir()) / f"holdfast-postgres-{os.getuid()}-{run}"
    opened = os.open(note, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        folder = note.read_text()
        user = _connect(folder) if folder else None
        if user is None:
            folder = tempfile.mkdtemp(prefix="holdfast-postgres-")
            user = _start(folder, note)
    finally:
        os.close(opened)
    with user:
        yield f"postgresql://postgres@/postgres?host={folder}/socket"


def _connect(folder: str) -> socket.socket | None:
    user = socket.socket(socket.AF_UNIX)
    try:
        user.connect(f"{folder}/control")
        if user.recv(1):
            return user
    except OSError:
        pass
    user.close()
    return None


def _start(folder: str, note: Path) -> socket.socket:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.postgres.server_main", folder, str(note)],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as answer:
        is_ready = bool(answer.readline())
    user = _connect(folder) if is_ready else None
    if user is None:
        raise RuntimeError(f"the PostgreSQL server of the tests ended with {process.wait()}")
    process.returncode = 0  # it outlives this process, which must not wait for it
    return user
