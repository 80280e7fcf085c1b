"""Fixtures of the stores. The contract tests run over every entry of `BACKENDS`; add a new backend there."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.core import FakeClock
from holdfast.store import Home, MemoryStore, Store
from holdfast.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from tests.support.postgres import Databases


class Backend(Protocol):
    """Opens a store of one kind, and closes it."""

    def __call__(
        self, folder: Path, clock: FakeClock, request: pytest.FixtureRequest
    ) -> AbstractAsyncContextManager[Store]: ...


PRESENCE_SECONDS = 600.0
"""No lease ends because this machine is busy."""


@asynccontextmanager
async def memory(folder: Path, clock: FakeClock, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    store = MemoryStore(clock=clock)
    yield store
    await store.close()


@asynccontextmanager
async def sqlite(folder: Path, clock: FakeClock, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    store = await SqliteStore.start(Home(folder / "home"), clock=clock)
    yield store
    await store.close()


@asynccontextmanager
async def postgres(folder: Path, clock: FakeClock, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    from holdfast.store.postgres.store import PostgresStore

    databases: Databases = request.getfixturevalue("postgres_databases")
    url = await databases.take()
    try:
        store = await PostgresStore.start(
            url, home=Home(folder / "home"), clock=clock, presence_seconds=PRESENCE_SECONDS
        )
        yield store
        await store.close()
    finally:
        databases.give_back(url)


@asynccontextmanager
async def postgres_objects(
    folder: Path, clock: FakeClock, request: pytest.FixtureRequest
) -> AsyncIterator[Store]:
    """With almost every blob as an object."""
    from holdfast.store import put_blobs_setting
    from holdfast.store.postgres.store import PostgresStore

    databases: Databases = request.getfixturevalue("postgres_databases")
    url = await databases.take()
    try:
        await put_blobs_setting(url, f"file://{folder}/objects")
        store = await PostgresStore.start(
            url,
            home=Home(folder / "home"),
            clock=clock,
            presence_seconds=PRESENCE_SECONDS,
            large_bytes=8,
        )
        yield store
        await store.close()
    finally:
        databases.give_back(url)


BACKENDS: dict[str, Backend] = {"memory": memory, "sqlite": sqlite, "postgres": postgres}
DURABLE = [name for name in BACKENDS if name != "memory"]
OBJECTS = pytest.param("postgres-objects", marks=pytest.mark.soak)
"""The long form runs every test of the store over objects as well; `test_objects` is the short one."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(params=[*BACKENDS, OBJECTS])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    async with {**BACKENDS, "postgres-objects": postgres_objects}[request.param](
        tmp_path, clock, request
    ) as opened:
        yield opened


@pytest.fixture(params=DURABLE)
async def durable(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    async with BACKENDS[request.param](tmp_path, clock, request) as opened:
        yield opened


@pytest.fixture
async def disk(home: Home, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.start(home, clock=clock)
    yield store
    await store.close()
