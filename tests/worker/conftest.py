"""Engines and stores that workers share. The tests of the contract run over every entry of `ENGINES`."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.core import SystemClock
from holdfast.store import Home, MemoryStore, WorkStore
from holdfast.worker import Dispatch, MemoryDispatch, install_dispatch, open_dispatch

if TYPE_CHECKING:
    from tests.support.postgres import Databases

PRESENCE_SECONDS = 600.0
HEARTBEAT_SECONDS = 6.0
"""Long enough that no job is given again because this machine is busy: tests count how often each is given."""


@dataclass(frozen=True)
class Shared:
    """What workers share."""

    store: WorkStore
    dispatch: Dispatch
    url: str | None = None


@asynccontextmanager
async def memory(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shared]:
    store = MemoryStore(clock=SystemClock())
    yield Shared(store, MemoryDispatch())
    await store.close()


@asynccontextmanager
async def in_postgres(folder: Path, request: pytest.FixtureRequest, *, engine: str) -> AsyncIterator[Shared]:
    from holdfast.store.postgres.store import PostgresStore

    databases: Databases = request.getfixturevalue("postgres_databases")
    url = await databases.take()
    try:
        if engine != "pgqueuer":  # which every database of the tests has
            await install_dispatch(url, engine=engine)
        store = await PostgresStore.start(
            url, home=Home(folder / "home"), clock=SystemClock(), presence_seconds=PRESENCE_SECONDS
        )
        dispatch = open_dispatch(url, engine=store.engine, heartbeat_seconds=HEARTBEAT_SECONDS)
        yield Shared(store, dispatch, url)
        await dispatch.close()
        await store.close()
    finally:
        databases.give_back(url)


ENGINES: dict[str, Callable[[Path, pytest.FixtureRequest], AbstractAsyncContextManager[Shared]]] = {
    "memory": memory,
    "pgqueuer": partial(in_postgres, engine="pgqueuer"),
    "procrastinate": partial(in_postgres, engine="procrastinate"),
}


@pytest.fixture(params=ENGINES)
async def shared(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shared]:
    async with ENGINES[request.param](tmp_path, request) as opened:
        yield opened
