"""Python processes that start in milliseconds: a fork server with the slow libraries already loaded.

Importing the MCP library takes a process one to two seconds of CPU, the command line half a second, and the tests start
hundreds of them.
`forked_python` returns a command line that behaves like `python ...`: its own process, environment, folder, standard
streams, signals and exit code. `client_main` hands all of these to `server_main`, which forks.

Use a plain `sys.executable` where the start of the interpreter is the point, and for a program that runs in a sandbox:
the client would be confined, and the fork would not.
"""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent


def forked_python(*arguments: str, owns_terminal: bool = False) -> list[str]:
    """The command line that runs `python SCRIPT ...` or `python -m MODULE ...` in a fork of the server.

    With `owns_terminal`, standard input is a terminal of no session yet, and becomes that of the program.
    """
    if not hasattr(os, "pidfd_open"):
        return [sys.executable, *arguments]  # only Linux has what the server needs
    client = [sys.executable, "-I", "-S", str(_HERE / "client_main.py"), _server()]
    return [*client, "owns-terminal" if owns_terminal else "", *arguments]


@functools.cache
def _server() -> str:
    """Start the server, once per test process; it ends with us because its standard input is our pipe."""
    folder = tempfile.mkdtemp(prefix="fork-server-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/socket"
    server = subprocess.Popen(
        [sys.executable, str(_HERE / "server_main.py"), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(server.communicate)
    assert server.stdout.readline() == b"ready\n"
    return path
