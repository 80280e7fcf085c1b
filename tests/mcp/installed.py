"""Real servers of other people: those in the project's environment, and the one from npm in a cache of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.installed_programs import NotInstalled, cache_folder, skip_loudly

FILESYSTEM_PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"
CACHE = cache_folder("npm")
PROGRAM = CACHE / "node_modules" / ".bin" / "mcp-server-filesystem"


def python_server(name: str) -> str:
    """The program of a server that is among the project's own development requirements."""
    return str(Path(sys.executable).with_name(name))


def filesystem_server() -> str:
    """npm's filesystem server; a test that needs it is skipped, loudly, where it is not installed."""
    if not shutil.which("node") or not PROGRAM.exists():
        skip_loudly(FILESYSTEM_PACKAGE)
    return str(PROGRAM)


def install() -> None:
    """Have npm install it, once. Raises NotInstalled."""
    if PROGRAM.exists():
        return
    if not shutil.which("npm") or not shutil.which("node"):
        raise NotInstalled("node and npm are not there")
    CACHE.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(CACHE), "--no-audit", "--no-fund", FILESYSTEM_PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        raise NotInstalled("npm install did not come to an end") from None
    if done.returncode:
        raise NotInstalled(f"npm install failed: {done.stderr.strip().splitlines()[-1:]}")
