"""Real servers of other people: those in the project's environment, and the one from npm in a cache of its own."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from tests.caching import cache_folder

FILESYSTEM_PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"
CACHE = cache_folder("npm")


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
        if not program.exists():
            command = [
                "npm",
                "install",
                "--prefix",
                str(CACHE),
                "--no-audit",
                "--no-fund",
                FILESYSTEM_PACKAGE,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
            if done.returncode:
                _skip(f"npm install failed: {done.stderr.strip().splitlines()[-1:]}")
    return str(program)


def _skip(reason: str) -> NoReturn:
    print(f"\n*** NOT TESTED against {FILESYSTEM_PACKAGE}: {reason} ***", file=sys.__stderr__, flush=True)
    pytest.skip(reason)
