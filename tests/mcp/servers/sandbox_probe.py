"""A server that tries what it may: it reads, writes, connects and starts programs, and says what came of it."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("probing")


@server.tool(structured_output=False)
def read(path: str) -> str:
    """What stands in a file."""
    return _tried(lambda: Path(path).read_text())


@server.tool(structured_output=False)
def write(path: str) -> str:
    """Make or change a file."""
    return _tried(lambda: Path(path).write_text("written"))


@server.tool(structured_output=False)
def empty(path: str) -> str:
    """Cut a file off at its start."""
    return _tried(lambda: os.truncate(path, 0))


@server.tool(structured_output=False)
def remove(path: str) -> str:
    """Delete a file."""
    return _tried(lambda: os.unlink(path))


@server.tool(structured_output=False)
def connect(kind: str) -> str:
    """Open a socket."""
    return _tried(lambda: socket.socket(getattr(socket, kind)).close())


@server.tool(structured_output=False)
def shell(command: str) -> str:
    """Have a child do it."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return f"{done.returncode}{done.stdout}"


def _tried(deed: Callable[[], object]) -> str:
    try:
        return str(deed())
    except OSError as error:
        return f"refused: {error.strerror}"


if __name__ == "__main__":
    server.run("stdio")
