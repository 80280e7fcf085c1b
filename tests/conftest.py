"""For every test: programs start as they would at a terminal, however the tests were started."""

import asyncio
import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.support import fork_server
from tests.support.memory_folder import keep_temporary_files_in_memory
from tests.support.sandbox_finding import REAL_FIND, share_finding

from holdfast.commands import probe

if TYPE_CHECKING:
    from tests.support.postgres import Databases

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and a program that a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = frozenset(
    (
        "agent/test_lisp_flow.py", "agent/test_process_crashes.py", "cli/test_approvals.py", "cli/test_chat.py",
        "cli/test_doctor.py", "cli/test_pages.py", "commands/test_attacks.py", "commands/test_histories.py",
        "mcp/test_f09_approved_roots.py", "mcp/test_mcp_secrets.py", "models/test_model_deferred.py",
        "policy/flow/test_choices.py", "session/test_command_histories.py", "session/test_deletion.py",
        "test_canaries.py", "web/test_accidents.py", "web/test_attacks.py", "web/test_pages.py", "web/test_phone.py",
        "worker/test_outages.py", "worker/test_storms.py", "worker/test_up.py",
    )
)  # fmt: skip
"""Modules with tests that take long. A long test that starts last leaves a core idle."""

# How long an example takes says nothing on a busy machine.
settings.register_profile(
    "short", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("short"), max_examples=1000)
settings.load_profile("short")


_NUMBERS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """The long form has a thousand examples of each property, and not forty. All workers share one fork server."""
    if config.option.markexpr == "soak":
        settings.load_profile("long")
    if not hasattr(config, "workerinput"):
        keep_temporary_files_in_memory()
    else:
        fork_server.share_server(config.workerinput["fork_server"])
        config.pluginmanager.register(_SharedCompilation(config.workerinput))


class _SharedCompilation:
    """Each worker starts to import the test modules at another place, and finds the rest compiled by the others.

    In a fresh checkout, compiling them with their rewritten assertions takes three times as long as loading them.
    """

    def __init__(self, worker: dict[str, Any]) -> None:
        self._number = int(worker["workerid"].removeprefix("gw"))
        self._count = worker["workercount"]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if isinstance(collector, pytest.Directory) and report.result:
            start = len(report.result) * self._number // self._count
            report.result = [*report.result[start:], *report.result[:start]]
        return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # xdist has no annotations
    """Give a worker the address of the fork server."""
    node.workerinput["fork_server"] = fork_server.start_server()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than there are cores: many tests wait for a program that they started."""
    return len(os.sched_getaffinity(0)) + 2 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection: a million objects, which stay until the end. It took half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest tests first; every property also in the long form; tests with PostgreSQL have more time.

    The first test with PostgreSQL also waits until the server has started.
    """
    modules = {item.path: item.nodeid.partition("::")[0].removeprefix("tests/") for item in items}
    # By name too: all workers need the same order, and each collects in another one.
    items.sort(key=lambda item: (modules[item.path] not in LONGEST, modules[item.path]))
    for item in items:
        if config.option.markexpr == "soak" and getattr(
            getattr(item, "obj", None), "is_hypothesis_test", False
        ):
            item.add_marker("soak")
        chosen = getattr(item, "callspec", None)
        engines = {each for each in chosen.params.values() if isinstance(each, str)} if chosen else set()
        is_slow = "postgres_databases" in getattr(item, "fixturenames", ())
        if (is_slow or engines & {"postgres", "pgqueuer", "procrastinate"}) and item.get_closest_marker(
            "timeout"
        ) is None:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session", autouse=True)
def sandbox_finding() -> Iterator[None]:
    """The probe of the command sandbox runs once, not in every fresh home."""
    folder = tempfile.mkdtemp(prefix="finding-")
    share_finding(Path(folder))
    yield
    shutil.rmtree(folder)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which reads the whole list of earlier folders to find a free name."""
    folder = tmp_path_factory.getbasetemp() / f"t{next(_NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def own_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe looks for itself, in this process."""
    monkeypatch.setattr(probe, "_find", REAL_FIND)


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
