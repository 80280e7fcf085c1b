"""The fork server: `server_main.py SOCKET`. It runs until its standard input ends.

Each connection of `client_main` carries three descriptors and one JSON object. A handler process forks the program,
answers with its exit status, and kills it when the client goes away.
"""

import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import termios
import threading
import time
import traceback
from importlib import import_module
from typing import Any, NoReturn

PRELOADED = (
    "holdfast.cli.chat.chat",
    "holdfast.cli.commands.doctor",
    "holdfast.cli.commands.exec",
    "holdfast.cli.commands.hook",
    "holdfast.cli.commands.mcp",
    "holdfast.cli.commands.model",
    "holdfast.cli.commands.proxy",
    "holdfast.cli.commands.session",
    "holdfast.cli.commands.teams",
    "holdfast.cli.commands.web",
    "holdfast.cli.help_pages",
    "holdfast.cli.log_file",
    "holdfast.cli.main",
    "holdfast.cli.terminal.line_editor",
    "holdfast.cli.terminal.markdown",
    "holdfast.guests.lisp.guest",
    "holdfast.guests.python.worker_pool",
    "holdfast.mcp.client.connection",
    "holdfast.mcp.client.http",
    "holdfast.mcp.client.stdio",
    "holdfast.mcp.proxy.server",
    "holdfast.mcp.proxy.stdio",
    "holdfast.models.provider_model",
    "holdfast.policy.ironcurtain",
    "holdfast.policy.parser",
    "holdfast.store.postgres.store",
    "holdfast.web.serve",
    "holdfast.worker.pgqueuer_dispatch",
    "markdown_it",
    "mcp.server.mcpserver",
    "mcp.server.stdio",
    "prompt_toolkit",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai_compatible",
    "rich.markdown",
    "uvicorn",
    "wcwidth",
)


def main(path: str) -> None:
    """Accept connections and handle each in its own process."""
    for module in PRELOADED:
        import_module(module)
    assert threading.active_count() == 1, "a fork keeps only one thread"
    gc.freeze()  # keeps the pages of the libraries shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while listener.fileno() in select.select([listener.fileno(), 0], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                handle(connection)
            connection.close()


def handle(connection: socket.socket) -> NoReturn:
    """Fork the program that the client asks for, and report how it ends."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    size = int.from_bytes(head, "big")
    request = json.loads(connection.recv(size, socket.MSG_WAITALL))
    pid = os.fork()
    if pid == 0:
        connection.close()
        run(request, descriptors)
    for descriptor in (0, 1, *descriptors):
        os.close(descriptor)
    connection.sendall(pid.to_bytes(4, "big"))
    ended = os.pidfd_open(pid)
    if ended not in select.select([ended, connection.fileno()], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    try:
        connection.sendall(code.to_bytes(4, "big", signed=True))
    finally:
        os._exit(0)


def run(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Become the program: its streams, folder, environment and arguments."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C and a new size of the window are signals to the program
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None  # it remembers $TMPDIR
    arguments = request["arguments"]
    code: object = 0
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    # Taking all the loaded modules apart would cost more than the program did.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main(sys.argv[1])
