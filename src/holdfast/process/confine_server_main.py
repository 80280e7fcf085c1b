"""Confine: a launcher that takes rights away from itself and becomes the server. What it cannot enforce, it does not start.

Run on the bare interpreter (`mcp/sandbox.py` writes the command) with RULES COMMAND [ARGUMENT...], where RULES is JSON:
`write` are the only places that may be changed, `hide` may not be read but for `show` within it, and without `network`
there is no socket of any kind. Files are held by Landlock, sockets by seccomp; both stay with whatever the server starts.
"""

import errno
import json
import os
import platform

import holdfast.process.landlock as landlock
import holdfast.process.seccomp as seccomp

REFUSED = 126
OLDEST_LANDLOCK = 3
"""Before it, a file outside could still be emptied."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOCKET = {"x86_64": 41, "aarch64": 198}
_IO_URING_SETUP = 425


def main(arguments: list[str]) -> int:
    """Give up the rights, then become the command."""
    rules, command = json.loads(arguments[0]), arguments[1:]
    try:
        seccomp.give_up_privileges()
        restrict_files(rules["write"], hidden=rules["hide"], shown=rules["show"])
        if not rules["network"]:
            _forbid_sockets(platform.machine())
    except OSError as error:
        return _refuse(
            f"{error.strerror}, so it was not started; 'sandbox': false in its entry runs it unconfined"
        )
    try:
        os.execvp(command[0], command)  # noqa: S606 - the person's own configuration names the program
    except OSError as error:
        return _refuse(f"{command[0]}: {error.strerror}")


def restrict_files(writable: list[str], *, hidden: list[str], shown: list[str]) -> None:
    """From here on only these places can be changed, and what is hidden cannot be read. Raises OSError."""
    if landlock.version() < OLDEST_LANDLOCK:
        raise OSError(errno.ENOSYS, "this kernel cannot confine a program to folders (Landlock 3, Linux 6.2)")
    allowed: dict[str, int] = dict.fromkeys(_DEVICES, landlock.READ | landlock.WRITE)
    for path in (*all_but(hidden), *map(os.path.realpath, shown)):
        allowed[path] = allowed.get(path, 0) | landlock.READ
    for path in map(os.path.realpath, writable):
        allowed[path] = allowed.get(path, 0) | landlock.WRITE
    landlock.restrict(allowed, withheld=landlock.READ | landlock.WRITE, network=0)


def all_but(hidden: list[str]) -> list[str]:
    """The fewest places that hold everything except what is hidden. Landlock can only allow, and whole trees at that."""
    kept, closed = [], [os.path.realpath(path) for path in hidden]
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        inside = path if path.endswith("/") else f"{path}/"
        if not any(each == path or each.startswith(inside) for each in closed):
            kept.append(path)
        elif path not in closed:
            try:
                waiting += [each.path for each in os.scandir(path) if not each.is_symlink()]
            except OSError:
                continue  # what we cannot list, the server gets nothing of
    return kept


def _forbid_sockets(machine: str) -> None:
    if machine not in _SOCKET:
        raise OSError(errno.ENOSYS, f"sockets cannot be forbidden on a {machine}")
    seccomp.forbid(machine, {_SOCKET[machine]: errno.EACCES, _IO_URING_SETUP: errno.EPERM})


def _refuse(reason: str) -> int:
    os.write(2, f"{reason}\n".encode())
    return REFUSED
