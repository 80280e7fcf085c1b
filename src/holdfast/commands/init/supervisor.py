"""The supervisor of one command: starts the program confined, in its own mount namespace, and ends all that it started.

It is a subreaper: a process that detaches itself (setsid, nohup, two forks) becomes its child and is found.
"""

import contextlib
import errno
import json
import os
import resource
import select
import signal
import struct
from fcntl import ioctl

from holdfast.commands.init import confine, syscalls
from holdfast.commands.init.process_table import ProcessTable
from holdfast.commands.init.root import LAYERS

KILL = 0
"""The control byte that ends the command; any other byte is a signal for the program."""
_SET_CONTROLLING_TERMINAL = 0x540E
_IGNORED = [number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]
"""The interpreter ignores some signals, and a program would inherit that."""
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_NOT_STARTED, _NOT_EXECUTABLE, _NOT_FOUND = 125, 126, 127


class Program:
    """What to start, as the host asked for it."""

    def __init__(
        self,
        *,
        argv: "list[str]",
        cwd: str,
        environment: "dict[str, str]",
        has_terminal: bool,
        limits: "dict[str, int]",
        umask: int,
        writable: "list[str]",
        readable: "list[str] | None",
        ports: "tuple[int, ...]",
        without: "frozenset[str]",
    ) -> None:
        self.argv = argv
        self.cwd = cwd
        self.environment = environment
        self.has_terminal = has_terminal
        self.limits = limits
        self.umask = umask
        self.writable = writable
        self.readable = readable
        self.ports = ports
        self.without = without


def supervise(command: Program, streams: "list[int]", *, report: int, control: int, processes: int) -> None:
    """Run a command to its end, write how it ended to `report`, and exit. Called in a forked process; never returns."""
    try:
        _take_over(streams, {report, control, processes})
        if command.readable is None:
            _enter_mounts(command.without)
        table = ProcessTable(processes)
        woken = _wake_on_child()
        program = os.fork()
        if program == 0:
            _start(command, streams)
        for stream in set(streams):
            os.close(stream)
        code = _wait(program, control, woken, table)
        left = table.kill_descendants()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0)[0]:
                pass
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime
        result = {"code": code, "left": left, "cpu_seconds": cpu, "memory_mb": used.ru_maxrss // 1024}
        os.write(report, json.dumps(result).encode())
    except Exception as error:
        # Without a report the host says that the command was killed; the reason goes where the program's output goes.
        with contextlib.suppress(OSError):
            os.write(streams[-1], f"the program was not started: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(0)


def _take_over(streams: "list[int]", kept: "set[int]") -> None:
    signal.set_wakeup_fd(-1)
    syscalls.control(syscalls.SET_DEATH_SIGNAL, signal.SIGKILL)
    syscalls.control(syscalls.SET_SUBREAPER, 1)
    os.setsid()
    _close_all_but({*streams, *kept})


def _enter_mounts(without: "frozenset[str]") -> None:
    syscalls.unshare(syscalls.NEW_MOUNTS)
    syscalls.mount("none", "/", flags=syscalls.RECURSIVE | syscalls.PRIVATE)
    if "hidden-layers" not in without:
        syscalls.unmount(LAYERS, detach=True)


def _wake_on_child() -> int:
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def _wait(program: int, control: int, woken: int, table: ProcessTable) -> int:
    """Wait until the program ends or the host ends it; reap what detached itself meanwhile. Negative: a signal."""
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(control, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
                continue
            for byte in os.read(control, 64) or bytes([KILL]):
                if byte == KILL:
                    with contextlib.suppress(OSError):
                        os.kill(program, signal.SIGKILL)
                    table.kill_descendants()
                    return -signal.SIGKILL
                _send(program, byte)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == program:
                    return os.waitstatus_to_exitcode(ended[1])


def _send(program: int, number: int) -> None:
    try:
        os.killpg(program, number)
    except OSError:
        with contextlib.suppress(OSError):
            os.kill(program, number)


def _start(command: Program, streams: "list[int]") -> None:
    """Confine this process and execute the program. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        _close_all_but({0, 1, 2})
        if command.has_terminal:
            ioctl(0, _SET_CONTROLLING_TERMINAL, struct.pack("i", 0))
        confine.set_limits(command.limits, command.without)
        os.umask(command.umask)
        _enter(command.cwd)
        confine.give_up(command.writable, command.without, readable=command.readable, ports=command.ports)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    except Exception as error:
        _exit(f"the program was not started: {error}", _NOT_STARTED)
    try:
        _execute(command.argv, command.environment)
    except OSError as error:
        code = _NOT_FOUND if error.errno in _MISSING else _NOT_EXECUTABLE
        _exit(f"{command.argv[0]}: {error.strerror}", code)
    except Exception as error:
        _exit(f"{command.argv[0]!r} cannot be executed: {error}", _NOT_EXECUTABLE)


def _execute(argv: "list[str]", environment: "dict[str, str]") -> None:
    """Search PATH and execute. Not os.execvpe: it imports a module, and the interpreter may be out of view. Raises OSError."""
    name = argv[0]
    places = (
        [name]
        if "/" in name
        else [f"{each}/{name}" for each in environment.get("PATH", "").split(":") if each]
    )
    refused = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for place in places:
        try:
            os.execve(place, argv, environment)  # noqa: S606 - running it is the purpose
        except OSError as error:
            if error.errno not in _MISSING:
                refused = error
    raise refused


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        _exit(f"{folder}: {error.strerror}", _NOT_EXECUTABLE)


def _exit(message: str, code: int) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{message}\n".encode("utf-8", "replace"))
    os._exit(code)


def _close_all_but(kept: "set[int]") -> None:
    start = 3
    for descriptor in sorted(kept):
        if descriptor >= start:
            syscalls.close_range(start, descriptor - 1)
            start = descriptor + 1
    syscalls.close_range(start, syscalls.LAST_DESCRIPTOR)
