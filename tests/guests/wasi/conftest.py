"""One component for all tests, built once per version into the virtual environment: `make test` pays half a minute once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY
from tests.installed_programs import cache_folder

from holdfast.guests import Engine, Guest
from holdfast.guests.wasi import WorkerPool, wasi_engine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test waits for the build, which on a busy machine takes longer than a test may."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where the component lies between test runs."""
    folder = cache_folder("wasi")

    async def build() -> None:
        workers = WorkerPool(key=KEY, cache=folder)
        await workers.prepare()
        await workers.close()

    asyncio.run(build())
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
async def engine(cache: Path, workspace: Path) -> AsyncIterator[Engine]:
    """An engine that leaves nothing behind."""
    made = wasi_engine(key=KEY, cache=cache, workspace=workspace)
    yield made
    await made.close()


@pytest.fixture
def guest(engine: Engine) -> Guest:
    """A fresh guest."""
    return engine.guest()
