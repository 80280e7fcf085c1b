"""Python processes that start in milliseconds: a fork server with the slow libraries already loaded.

Importing the MCP library takes a process one to two seconds of CPU, the command line half a second, and the tests start
hundreds of them.
`forked_python` returns a command line that behaves like `python ...`: its own process, environment, folder, standard
streams, signals and exit code. `client_main` hands all of these to `server_main`, which forks. `Forked.start` does the same
without a process for the client, for a test that starts programs by the hundred. All workers of a test run share one server.

Use a plain `sys.executable` where the start of the interpreter is the point, and for a program that runs in a sandbox:
the client would be confined, and the fork would not.
"""

import asyncio
import atexit
import functools
import marshal
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent


def forked_python(*arguments: str, owns_terminal: bool = False) -> list[str]:
    """The command line that runs `python SCRIPT ...`, `python -m MODULE ...` or `python -c CODE ...` in a fork of the server.

    With `owns_terminal`, standard input is a terminal of no session yet, and becomes that of the program.
    """
    if not hasattr(os, "pidfd_open"):
        return [sys.executable, *arguments]  # only Linux has what the server needs
    client = [sys.executable, "-I", "-S", str(_HERE / "client_main.py"), _server()]
    return [*client, "owns-terminal" if owns_terminal else "", *arguments]


class Forked:
    """A program that was forked from the server, and is killed when this is closed or forgotten."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection
        self._code: int | None = None

    @classmethod
    def start(cls, *arguments: str, stdout: int) -> "Forked":
        """Start `python SCRIPT ...` or `python -m MODULE ...` here, with a descriptor as its standard output."""
        body = marshal.dumps(("", 0o077, list(arguments), os.getcwd(), dict(os.environb)))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(_server())
        socket.send_fds(connection, [len(body).to_bytes(4, "big")], [0, stdout, 2])
        connection.sendall(body)
        return cls(int.from_bytes(connection.recv(4), "big"), connection)

    async def wait(self) -> int:
        """The exit code of the program, once it has ended; that of a signal is negative."""
        if self._code is None:
            self._connection.setblocking(False)
            answer = await asyncio.get_running_loop().sock_recv(self._connection, 4)
            self._code = int.from_bytes(answer, "big", signed=True)
            self._connection.close()
        return self._code


@functools.cache
def start_server() -> str:
    """Start the server; returns the path of its socket. It ends with us because its standard input is our pipe."""
    folder = tempfile.mkdtemp(prefix="fork-server-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        number = str(listener.fileno())
        command = [sys.executable, str(_HERE / "server_main.py"), path, number]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    atexit.register(server.communicate)
    return path


def share_server(path: str) -> None:
    """Use the server of another process, which lives longer than this one."""
    global _shared
    _shared = path


_shared = ""


def _server() -> str:
    return _shared or start_server()
