"""Failing system calls, including SQLite's own, and power failures between them: nothing acknowledged is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.store.processes import ROOT

FAULTS = [
    *(("broken", length) for length in ("once", "lasting")),
    *(("full", length) for length in ("once", "lasting")),
    *(("torn", length) for length in ("once", "lasting")),
    ("short", "once"),
    ("killed", "once"),
    ("killed-after", "once"),
    ("killed-torn", "once"),
]
"""A call that fails, or completes half and fails, once or permanently; one that completes half; the end of the process."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled fault injection library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("NO C COMPILER: faults at system calls were not tried")
    target = tmp_path_factory.mktemp("disk") / "disk.so"
    source = ROOT / "tests" / "store" / "disk.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", target, source, "-ldl", "-lpthread"], check=True
    )
    return target


def reports_of(library: Path, module: str, *words: object) -> list[dict[str, object]]:
    """Run a module of these tests with the library preloaded, and return its output lines."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.store.{module}", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def suffer(
    library: Path, folder: Path, fault: str, length: str, *, first: int, stride: int
) -> list[dict[str, object]]:
    """Run the work with a failure at each step in turn, until it finishes before the failure."""
    reports = reports_of(library, "failing_disk", folder, fault, length, first, stride, 2000)
    assert "closed" in str(reports[-1]["acknowledged"])
    return reports


@pytest.mark.parametrize(("fault", "length"), FAULTS)
def test_whatever_call_fails_nothing_acknowledged_is_lost(
    library: Path, tmp_path: Path, fault: str, length: str
) -> None:
    reports = suffer(library, tmp_path, fault, length, first=1 + 3 * FAULTS.index((fault, length)), stride=79)
    assert len(reports) > 2
    assert [report for report in reports if report["wrong"]] == []


@pytest.mark.soak
@pytest.mark.parametrize(("fault", "length"), FAULTS)
def test_whatever_single_call_fails_nothing_acknowledged_is_lost(
    library: Path, tmp_path: Path, fault: str, length: str
) -> None:
    reports = suffer(library, tmp_path, fault, length, first=1, stride=1)
    assert len(reports) > 200
    assert [report for report in reports if report["wrong"]] == []


def test_a_power_failure_at_any_moment_loses_nothing_acknowledged(library: Path, tmp_path: Path) -> None:
    reports = reports_of(library, "power_cut", tmp_path, 30, 1)
    assert len(reports) == 30
    assert [report for report in reports if report["wrong"]] == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_thousand_power_failures_lose_nothing_acknowledged(
    library: Path, tmp_path: Path, seed: int
) -> None:
    reports = reports_of(library, "power_cut", tmp_path, 1000, seed)
    assert len(reports) == 1000
    assert [report for report in reports if report["wrong"]] == []


def test_the_simulation_detects_a_store_that_syncs_too_little(library: Path, tmp_path: Path) -> None:
    reports = reports_of(library, "power_cut", tmp_path, 60, 3, "careless")
    assert [report for report in reports if report["wrong"]] != []


def test_a_really_full_disk_is_reported_and_work_continues_with_free_space(tmp_path: Path) -> None:
    small = f"mount -t tmpfs -o size=3m none {tmp_path}"
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*alone, small], capture_output=True).returncode:
        pytest.skip("NO MOUNTS WITHOUT RIGHTS HERE: a disk that is really full was not tried")
    work = f"{small} && exec {sys.executable} -m tests.store.full_disk {tmp_path}"
    done = subprocess.run([*alone, work], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > 20
