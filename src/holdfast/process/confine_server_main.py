"""The launcher of a sandboxed MCP server: it gives up rights and then executes the server. It fails closed: if it cannot
enforce a rule, it does not start the server.

`mcp/config/sandbox.py` runs it on the bare interpreter with RULES COMMAND [ARGUMENT...], where RULES is JSON: `write`
lists the only locations that can be changed, `hide` lists what cannot be read except for `show` within it, and without
`network` no socket can be created. Landlock enforces the file rules and seccomp the socket rule; both also apply to
every process that the server starts.
"""

import errno
import json
import os
import platform

import holdfast.process.landlock as landlock
import holdfast.process.seccomp as seccomp

REFUSED = 126
MIN_LANDLOCK_VERSION = 3
"""Older versions cannot prevent truncation of a file."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOCKET = {"x86_64": 41, "aarch64": 198}
_IO_URING_SETUP = 425


def main(arguments: list[str]) -> int:
    """Give up rights, then execute the command."""
    rules, command = json.loads(arguments[0]), arguments[1:]
    try:
        seccomp.give_up_privileges()
        restrict_files(rules["write"], hidden=rules["hide"], shown=rules["show"])
        if not rules["network"]:
            _forbid_sockets(platform.machine())
    except OSError as error:
        return _refuse(
            f"the server was not started: {error.strerror}; set 'sandbox': false in its entry to run it unconfined"
        )
    try:
        os.execvp(command[0], command)  # noqa: S606 - the person's own configuration names the program
    except OSError as error:
        return _refuse(f"{command[0]}: {error.strerror}")


def restrict_files(writable: list[str], *, hidden: list[str], shown: list[str]) -> None:
    """Restrict changes to these locations and reading to what is not hidden. Raises OSError."""
    if landlock.version() < MIN_LANDLOCK_VERSION:
        raise OSError(
            errno.ENOSYS, "the kernel cannot confine a program to folders (this needs Landlock 3, Linux 6.2)"
        )
    allowed: dict[str, int] = dict.fromkeys(_DEVICES, landlock.READ | landlock.WRITE)
    for path in (*all_but(hidden), *map(os.path.realpath, shown)):
        allowed[path] = allowed.get(path, 0) | landlock.READ
    for path in map(os.path.realpath, writable):
        allowed[path] = allowed.get(path, 0) | landlock.WRITE
    landlock.restrict(allowed, withheld=landlock.READ | landlock.WRITE, network=0)


def all_but(hidden: list[str]) -> list[str]:
    """List the fewest paths that cover everything except what is hidden. Landlock can only allow, and only whole trees."""
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
                continue  # a folder that cannot be listed is not allowed at all
    return kept


def _forbid_sockets(machine: str) -> None:
    if machine not in _SOCKET:
        raise OSError(errno.ENOSYS, f"sockets cannot be blocked on the architecture {machine}")
    seccomp.forbid(machine, {_SOCKET[machine]: errno.EACCES, _IO_URING_SETUP: errno.EPERM})


def _refuse(reason: str) -> int:
    os.write(2, f"{reason}\n".encode())
    return REFUSED
