"""The real programs in a network namespace with only loopback: they work, and need nothing else.

Each test runs a test of another file in its own process inside such a namespace.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.installed_programs import skip_loudly
from tests.teams.claude_program import claude_program
from tests.teams.goose_program import goose_program

ROOT = Path(__file__).parents[2]
ONE_TEST = "tests/teams/test_members.py::test_messages_are_answered_in_order_and_counted"
INSIDE = """
import os, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
links = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout.splitlines()
assert len(links) == 1 and " lo:" in links[0], links
os.execv(sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]])
"""


@pytest.fixture(autouse=True)
def _needs_a_namespace() -> None:
    if not shutil.which("unshare") or not shutil.which("ip"):
        skip_loudly("a network namespace (unshare and ip)")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        skip_loudly("a network namespace (the kernel does not let us make one)")


def inside(tmp_path: Path, *tests: str, seconds: float = 120) -> "subprocess.CompletedProcess[str]":
    """Run tests in a namespace whose only interface is loopback."""
    command = ["unshare", "-rn", sys.executable, "-c", INSIDE, "--basetemp", str(tmp_path / "inside"), *tests]
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=around, timeout=seconds
    )


@pytest.mark.soak
@pytest.mark.timeout(150)
def test_claude_and_goose_work_with_loopback_only(tmp_path: Path) -> None:
    claude_program()
    goose_program()
    done = inside(tmp_path, f"{ONE_TEST}[claude]", f"{ONE_TEST}[goose]")
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_claude_test_passes_with_loopback_only(tmp_path: Path) -> None:
    claude_program()
    done = inside(tmp_path, "tests/teams/test_claude.py", seconds=580)
    assert done.returncode == 0, done.stdout[-2000:]


def test_nothing_leaves_the_namespace(tmp_path: Path) -> None:
    """The check can fail: a connection to another address is impossible inside."""
    probe = (
        "import socket, sys; s = socket.socket(); s.settimeout(5);"
        "sys.exit(0 if s.connect_ex(('192.0.2.1', 443)) in (101, 113) else 1)"
    )
    done = subprocess.run(["unshare", "-rn", sys.executable, "-c", probe], check=False)
    assert done.returncode == 0
