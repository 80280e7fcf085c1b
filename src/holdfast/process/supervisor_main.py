"""The supervisor: a small process that ends one program, and every process that it started, when the host ends.

It is run, never imported: `python -I -S supervisor_main.py LIFELINE COMMAND [ARGUMENT...]`. LIFELINE is the reading end
of a pipe whose other end only the host holds. When the host closes it or dies in any way, including kill -9, the pipe
ends. Then the supervisor sends SIGTERM to the program's process group, and half a second later SIGKILL to what is left.

The program inherits the supervisor's standard streams, so no data passes through here. On Linux the supervisor is a
subreaper: a process that detaches itself becomes its child and is found. If the supervisor itself is killed, the kernel
kills the program. It imports only cheap modules of the standard library, so it starts in about 20 ms.
"""

import contextlib
import os
import select
import signal
import sys
import time

GRACE_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run the command until it or the lifeline ends, and return the command's exit code."""
    lifeline, command = int(arguments[0]), arguments[1:]
    os.set_inheritable(lifeline, False)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    # The terminal sends Ctrl-C to the whole foreground group; only the host decides what it means.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    server = _start(command)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    code = _watch(server, lifeline, woken)
    _terminate_tree(server)
    return code


def _start(command: list[str]) -> int:
    supervisor = os.getpid()
    server = os.fork()
    if server:
        return server
    os.setsid()
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it died before the line above took effect
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the person's own configuration names the program
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _watch(server: int, lifeline: int, woken: int) -> int:
    """Wait until the server or the lifeline ends."""
    while True:
        readable, _, _ = select.select([lifeline, woken], [], [])
        if woken in readable:
            with contextlib.suppress(BlockingIOError):
                if signal.SIGTERM in os.read(woken, 4096):
                    return 0
        for pid, status in _reaped():
            if pid == server:
                return os.waitstatus_to_exitcode(status) & 0xFF
        if lifeline in readable:
            return 0


def _terminate_tree(server: int) -> None:
    """Send SIGTERM to every remaining process, then SIGKILL."""
    asked_at = time.monotonic()
    _send(signal.SIGTERM, server)
    while _has_children():
        if time.monotonic() - asked_at > GRACE_SECONDS:
            _send(signal.SIGKILL, server)
        time.sleep(0.005)
        list(_reaped())


def _send(number: int, server: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server, number)
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants(parent: int) -> list[int]:
    try:
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as children:
            pids = [int(pid) for pid in children.read().split()]
    except OSError:  # there is no such file outside Linux, where only the process group is ended
        return []
    return pids + [below for pid in pids for below in _descendants(pid)]


def _reaped() -> list[tuple[int, int]]:
    found = []
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(ended)
    return found


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
