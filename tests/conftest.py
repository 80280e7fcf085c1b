"""For every test: programs start as they would at a terminal, however the tests were started."""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.postgres import Databases

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and a program that a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take what was collected out of garbage collection: a million objects that stay until the end."""
    gc.collect()
    gc.freeze()


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
