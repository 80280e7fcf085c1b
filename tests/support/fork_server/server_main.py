"""The fork server: `server_main.py SOCKET DESCRIPTOR`. It runs until its standard input ends, and loads nothing until it is used.

Each connection carries three descriptors and one request. The server forks the program, answers with its process id and its
exit status, and kills it when the client goes away.
"""

import ctypes
import faulthandler
import fcntl
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import termios
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple, NoReturn

PACKAGES = (
    "holdfast.cli",
    "holdfast.guests.python",
    "holdfast.services.doctor",
    "holdfast.teams",
)
"""Packages whose modules are all loaded."""
_COLLAPSE = 25
"""MADV_COLLAPSE, since Linux 6.1."""
_HUGE_PAGE = 2 << 20
_FLUSH_FAILED = 120
"""The exit code of an interpreter that cannot write its last output."""
PRELOADED = (
    "anyio._backends._asyncio",
    "encodings.ascii",
    "encodings.utf_8_sig",
    "holdfast.guests.lisp.guest",
    "holdfast.mcp.client.connection",
    "holdfast.mcp.client.http",
    "holdfast.mcp.client.stdio",
    "holdfast.mcp.loopback_guards",
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
    "prompt_toolkit.input.vt100",
    "prompt_toolkit.key_binding.bindings.search",
    "prompt_toolkit.patch_stdout",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai_compatible",
    "pydantic_monty",
    "rich.logging",
    "rich.markdown",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.auto",
    "wcwidth",
)


def main(path: str, descriptor: int) -> None:
    """Accept connections at a socket that listens already, and fork a program for each."""
    with socket.socket(fileno=descriptor) as listener:
        select.select([0, listener.fileno()], [], [])
        preload(Path(path).parent)
        programs = Programs(listener)
        try:
            while programs.step():
                pass
        finally:
            programs.kill()


def preload(folder: Path) -> None:
    """Load what the programs load."""
    gc.disable()  # nearly all of it stays
    for package in PACKAGES:
        for found in walk_packages(import_module(package).__path__, f"{package}."):
            if not found.name.endswith("_main"):
                import_module(found.name)
    for module in PRELOADED:
        import_module(module)
    sys.path.append(str(Path(__file__).parents[3]))  # programs of the tests
    import_module("tests.support.sandbox_finding").share_finding(folder)
    assert len(os.listdir("/proc/self/task")) == 1, "a fork keeps only one thread"
    gc.collect()
    gc.freeze()  # keeps the pages of the libraries shared
    gc.enable()
    _join_pages()


def _join_pages() -> None:
    """Put the loaded libraries into huge pages, which a fork shares with one entry for 512 pages.

    Copying and freeing the entries takes half of the time of a fork. An older kernel refuses, and keeps small pages.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, number, *_ = line.split()
        if rights == "rw-p" and number == "0":  # of no file
            start, end = (int(each, 16) for each in addresses.split("-"))
            start = -(-start // _HUGE_PAGE) * _HUGE_PAGE
            madvise(start, max(0, end - start), _COLLAPSE)


@dataclass(frozen=True)
class Program:
    """A program that runs, and the client that waits for its end."""

    pid: int
    ended: int
    """A descriptor that can be read once the program has ended."""
    client: socket.socket


class Programs:
    """The programs that run."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._by_descriptor: dict[int, Program] = {}
        self._poll = select.poll()
        for descriptor in (0, listener.fileno()):
            self._poll.register(descriptor, select.POLLIN)

    def step(self) -> bool:
        """Handle what happened. Returns whether the server still has a reason to run."""
        descriptor, _ = self._poll.poll()[0]  # one at a time: a number that is closed may be given again
        if descriptor == 0:
            return False
        if descriptor == self._listener.fileno():
            self._start(self._listener.accept()[0])
        else:
            program = self._by_descriptor[descriptor]
            self._end(program, is_abandoned=descriptor != program.ended)
        return True

    def kill(self) -> None:
        """Kill all of them."""
        for program in set(self._by_descriptor.values()):
            self._end(program, is_abandoned=True)

    def _start(self, connection: socket.socket) -> None:
        head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
        body = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        try:
            request = Request(*marshal.loads(body))
        except (EOFError, TypeError, ValueError):  # the client died
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            # INVARIANT: the child never returns from here, or it would end the other programs as the server does at its end.
            try:
                self._listener.close()
                for known in {*self._by_descriptor.values()}:
                    os.close(known.ended)
                    known.client.close()
                connection.close()
                run(request, descriptors)
            finally:
                os._exit(_FLUSH_FAILED)
        for descriptor in descriptors:
            os.close(descriptor)
        program = Program(pid, os.pidfd_open(pid), connection)
        for descriptor in (program.ended, connection.fileno()):
            self._by_descriptor[descriptor] = program
            self._poll.register(descriptor, select.POLLIN)
        with suppress(OSError):
            connection.sendall(pid.to_bytes(4, "big"))

    def _end(self, program: Program, *, is_abandoned: bool) -> None:
        """Tell the client how its program ended. It is killed if the client went away."""
        if is_abandoned:
            os.kill(program.pid, signal.SIGKILL)
        _, status = os.waitpid(program.pid, 0)
        for descriptor in (program.ended, program.client.fileno()):
            self._poll.unregister(descriptor)
            del self._by_descriptor[descriptor]
        os.close(program.ended)
        with suppress(OSError), program.client as client:
            client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


class Request(NamedTuple):
    """What a client asks for."""

    terminal: str
    umask: int
    arguments: list[str]
    folder: str
    environment: dict[bytes, bytes]


def run(request: Request, descriptors: list[int]) -> NoReturn:
    """Become the program: its streams, folder, environment and arguments."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request.terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C and a new size of the window are signals to the program
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, file=2)  # a test that waits in vain asks where the program stands
    os.chdir(request.folder)
    os.umask(request.umask)
    os.environ.clear()
    os.environb.update(request.environment)
    time.tzset()
    tempfile.tempdir = None  # it remembers $TMPDIR
    arguments = request.arguments
    code: object = 0
    try:
        if arguments[0] == "-c":
            sys.argv = ["-c", *arguments[2:]]
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
        elif arguments[0] == "-m":
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
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads its output any more
        code = _FLUSH_FAILED
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
