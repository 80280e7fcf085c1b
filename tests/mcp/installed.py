"""The real servers for tests: those in the project's environment, and npm's filesystem server in its own cache."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.installed_programs import NotInstalled, cache_folder, first_error, skip_loudly

FILESYSTEM_PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"
CACHE = cache_folder("npm")
PROGRAM = CACHE / "node_modules" / ".bin" / "mcp-server-filesystem"


def python_server(name: str) -> str:
    """The program of a server from the development requirements."""
    return str(Path(sys.executable).with_name(name))


def filesystem_server() -> str:
    """npm's filesystem server. Skips the test with a visible message if it is not installed."""
    if not shutil.which("node") or not PROGRAM.exists():
        skip_loudly(FILESYSTEM_PACKAGE)
    return str(PROGRAM)


def install() -> None:
    """Install it with npm unless it is there. Raises NotInstalled."""
    if PROGRAM.exists():
        return
    if not shutil.which("npm") or not shutil.which("node"):
        raise NotInstalled("node and npm are not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(CACHE), "--no-audit", "--no-fund", FILESYSTEM_PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        raise NotInstalled("npm install timed out") from None
    if done.returncode:
        raise NotInstalled(f"npm install failed: {first_error(done.stderr)}")
