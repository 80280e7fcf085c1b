"""Faults at the system calls themselves, SQLite's own included: nothing acknowledged is lost, nothing is doubled, all is told."""

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
"""A call that fails, or does half of it and fails, once or from then on; one that does half; and the end of the process."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk that fails, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("NO C COMPILER: faults at system calls were not tried")
    target = tmp_path_factory.mktemp("disk") / "disk.so"
    source = ROOT / "tests" / "store" / "disk.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", target, source, "-ldl"], check=True)
    return target


def suffer(
    library: Path, folder: Path, fault: str, length: str, *, first: int, stride: int
) -> list[dict[str, object]]:
    """Run the work once for each step at which the disk fails, until it comes to its end before that."""
    words = [str(folder), fault, length, *map(str, (first, stride, 2000))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.failing_disk", *words],
        cwd=ROOT,
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=True,
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert "closed" in reports[-1]["acknowledged"]
    return reports


@pytest.mark.parametrize(("fault", "length"), FAULTS)
def test_whatever_call_fails_nothing_acknowledged_is_lost(
    library: Path, tmp_path: Path, fault: str, length: str
) -> None:
    reports = suffer(library, tmp_path, fault, length, first=1 + 3 * FAULTS.index((fault, length)), stride=37)
    assert len(reports) > 5
    assert [report for report in reports if report["wrong"]] == []


@pytest.mark.soak
@pytest.mark.parametrize(("fault", "length"), FAULTS)
def test_whatever_single_call_fails_nothing_acknowledged_is_lost(
    library: Path, tmp_path: Path, fault: str, length: str
) -> None:
    reports = suffer(library, tmp_path, fault, length, first=1, stride=1)
    assert len(reports) > 200
    assert [report for report in reports if report["wrong"]] == []


def test_a_disk_that_is_really_full_is_told_and_work_goes_on_when_there_is_room(tmp_path: Path) -> None:
    small = f"mount -t tmpfs -o size=3m none {tmp_path}"
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*alone, small], capture_output=True).returncode:
        pytest.skip("NO MOUNTS WITHOUT RIGHTS HERE: a disk that is really full was not tried")
    work = f"{small} && exec {sys.executable} -m tests.store.full_disk {tmp_path}"
    done = subprocess.run([*alone, work], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > 20
