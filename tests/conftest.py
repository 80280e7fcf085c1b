"""For every test: programs start as they would at a terminal, however the tests were started."""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.support.postgres import Databases

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and a program that a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says nothing on a busy machine.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: many tests wait for a program that they started."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Take what was collected out of garbage collection: a million objects that stay until the end."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests with PostgreSQL more time: the first one also waits until the server has started."""
    for item in items:
        chosen = getattr(item, "callspec", None)
        engines = {each for each in chosen.params.values() if isinstance(each, str)} if chosen else set()
        is_slow = "postgres_databases" in getattr(item, "fixturenames", ())
        if (is_slow or engines & {"postgres", "pgqueuer", "procrastinate"}) and item.get_closest_marker(
            "timeout"
        ) is None:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def postgres_databases() -> "Iterator[Databases]":
    """Empty databases of the PostgreSQL server of this test run, or of the one at `$HOLDFAST_TEST_POSTGRES`."""
    from tests.support.postgres import Databases, shared_server  # few tests need it

    owner = f"{os.getpid()}"
    given = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if given:
        databases = Databases(given, owner=owner)
        yield databases
        asyncio.run(databases.drop())
        return
    with shared_server(os.environ.get("PYTEST_XDIST_TESTRUNUID", owner)) as url:
        yield Databases(url, owner=owner)
