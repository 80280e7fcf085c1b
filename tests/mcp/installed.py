"""Real servers of other people: those in the project's environment, and the one from npm in a cache of its own."""

import fcntl
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest
from tests.caching import cache_folder

FILESYSTEM_PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"
CACHE = cache_folder("npm")
REFUSED = CACHE / ".refused"
"""Why npm could not install it the last time; so that not every test waits for the same no."""


def python_server(name: str) -> str:
    """The program of a server that is among the project's own development requirements."""
    return str(Path(sys.executable).with_name(name))


def filesystem_server() -> str:
    """npm's filesystem server, installed once; a test that needs it is skipped, loudly, where that is impossible."""
    program = CACHE / "node_modules" / ".bin" / "mcp-server-filesystem"
    if not shutil.which("npm") or not shutil.which("node"):
        _skip("node and npm are not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() and not _was_refused_lately():
            command = [
                "npm",
                "install",
                "--prefix",
                str(CACHE),
                "--no-audit",
                "--no-fund",
                FILESYSTEM_PACKAGE,
            ]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=40)
            except subprocess.TimeoutExpired:
                REFUSED.write_text("npm install did not come to an end")
            else:
                if done.returncode:
                    REFUSED.write_text(f"npm install failed: {done.stderr.strip().splitlines()[-1:]}")
        if not program.exists():
            _skip(REFUSED.read_text())
    return str(program)


def _was_refused_lately() -> bool:
    return REFUSED.exists() and time.time() - REFUSED.stat().st_mtime < 600


def _skip(reason: str) -> NoReturn:
    print(f"\n*** NOT TESTED against {FILESYSTEM_PACKAGE}: {reason} ***", file=sys.__stderr__, flush=True)
    pytest.skip(reason)
