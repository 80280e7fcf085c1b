"""Fixtures of the guest tests. The async tests of a module share one event loop, and with it engines and worker processes."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import KEY, component_cache

from holdfast import Runtime
from holdfast.commands import NoSandboxes
from holdfast.guests import Engines, python_engine
from holdfast.guests.python.engine import PythonEngine
from holdfast.guests.wasi import WorkerPool


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each module here and in `wasi` one event loop."""
    for item in items:
        folder = item.nodeid.partition("::")[0].rpartition("/")[0]
        is_ours = folder in ("tests/guests", "tests/guests/wasi")
        if is_ours and isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(loop_scope="module")
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime with every engine that needs no command sandbox, in its own data directory."""
    made = await Runtime.start(
        home=tmp_path / "home",
        engines=Engines(key=KEY, cache=component_cache()),
        sandboxes=NoSandboxes(),
    )
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_python() -> AsyncIterator[PythonEngine]:
    """The Python engine of a test module: its processes start once."""
    made = python_engine(key=KEY)
    yield made
    await made.close()


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where the WASI component is kept between test runs."""
    folder = component_cache()

    async def build() -> None:
        workers = WorkerPool(key=KEY, cache=folder)
        await workers.prepare()
        await workers.close()

    asyncio.run(build())
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers(cache: Path) -> AsyncIterator[WorkerPool]:
    """The WASI workers of a test module: the component is loaded once."""
    made = WorkerPool(key=KEY, cache=cache)
    yield made
    await made.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder
