"""Fixtures of the WASI tests: one component, built once into the virtual environment, and one pool of workers per module."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.wasi.running import KEY

from holdfast.guests import Engine, Guest
from holdfast.guests.wasi import WorkerPool, wasi_engine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test may wait for the build, which on a busy machine takes longer than a test may."""
    for item in items:
        if item.nodeid.startswith("tests/guests/wasi/"):
            item.add_marker(pytest.mark.timeout(900))


@pytest_asyncio.fixture(loop_scope="module")
async def engine(cache: Path, workspace: Path, workers: WorkerPool) -> AsyncIterator[Engine]:
    """An engine for an empty workspace."""
    made = wasi_engine(key=KEY, cache=cache, workspace=workspace, workers=workers)
    yield made
    await made.close()


@pytest.fixture
def guest(engine: Engine) -> Guest:
    """A new guest."""
    return engine.guest()
