"""Confine: a launcher that takes rights away from itself and becomes the server. What it cannot enforce, it does not start.

Run as a program, never imported by the host: `python -I -S confine.py RULES COMMAND [ARGUMENT...]`, where RULES is JSON:
`write` are the only places that may be changed, `hide` may not be read but for `show` within it, and without `network`
there is no socket of any kind. Files are held by Landlock, sockets by seccomp; both stay with whatever the server starts.
"""

import ctypes
import errno
import json
import os
import platform
import struct
import sys

REFUSED = 126
OLDEST_LANDLOCK = 3
"""Before it, a file outside could still be emptied."""

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_ALL = (1 << 15) - 1
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_WRITING = _ALL & ~_READING
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")

_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The architecture as seccomp names it, and the number of the call `socket`."""
_IO_URING_SETUP = 425
_X32_BIT = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Give up the rights, then become the command."""
    rules, command = json.loads(arguments[0]), arguments[1:]
    try:
        _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
        restrict_files(rules["write"], hidden=rules["hide"], shown=rules["show"])
        if not rules["network"]:
            forbid(platform.machine(), {_machine()[1]: errno.EACCES, _IO_URING_SETUP: errno.EPERM})
    except OSError as error:
        return _refuse(
            f"{error.strerror}, so it was not started; 'sandbox': false in its entry runs it unconfined"
        )
    try:
        os.execvp(command[0], command)  # noqa: S606 - the person's own configuration names the program
    except OSError as error:
        return _refuse(f"{command[0]}: {error.strerror}")


def offered_landlock() -> int:
    """The version of Landlock that this kernel has; below 1 for none."""
    return int(_libc.syscall(_CREATE_RULESET, None, 0, 1))


def restrict_files(writable: list[str], *, hidden: list[str], shown: list[str]) -> None:
    """From here on only these places can be changed, and what is hidden cannot be read. Raises OSError."""
    version = offered_landlock()
    if version < OLDEST_LANDLOCK:
        raise OSError(errno.ENOSYS, "this kernel cannot confine a program to folders (Landlock 3, Linux 6.2)")
    scopes = 0b11 if version >= 6 else 0  # abstract sockets of others, and signals to them
    attributes = struct.pack("<QQQ", _ALL, 0, scopes)[: 24 if version >= 6 else 8]
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "Landlock")
    allowed: dict[str, int] = dict.fromkeys(_DEVICES, _READING | _WRITING)
    for path in (*all_but(hidden), *map(os.path.realpath, shown)):
        allowed[path] = allowed.get(path, 0) | _READING
    for path in map(os.path.realpath, writable):
        allowed[path] = allowed.get(path, 0) | _WRITING
    for path, rights in allowed.items():
        _allow(ruleset, path, rights)
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "Landlock")
    os.close(ruleset)


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


def forbid(machine: str, calls: dict[int, int]) -> None:
    """From here on these system calls fail with their error. Raises OSError."""
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"sockets cannot be forbidden on a {machine}")
    program = [
        _step(_LOAD, value=4),
        _step(_JUMP_EQUAL, 1, 0, _MACHINES[machine][0]),
        _step(_RETURN, value=_KILL),
        _step(_LOAD, value=0),
        _step(_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        _step(_RETURN, value=_KILL),
    ]
    for number, error in calls.items():
        program += [_step(_JUMP_EQUAL, 0, 1, number), _step(_RETURN, value=_FAIL | error)]
    program.append(_step(_RETURN, value=_ALLOW))
    code = ctypes.create_string_buffer(b"".join(program))
    head = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code)))
    _checked(_libc.prctl(_SET_SECCOMP, _FILTER_MODE, head, 0, 0), "seccomp")


def _machine() -> tuple[int, int]:
    return _MACHINES.get(platform.machine(), (0, 0))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not there; nothing was allowed
    try:
        rights &= _ALL if os.path.isdir(path) else _OF_A_FILE
        rule = struct.pack("<Qi", rights, place)
        _checked(_libc.syscall(_ADD_RULE, ruleset, 1, rule, 0), "Landlock")
    finally:
        os.close(place)


def _step(code: int, if_true: int = 0, if_false: int = 0, value: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} was refused ({os.strerror(number)})")
    return result


def _refuse(reason: str) -> int:
    os.write(2, f"{reason}\n".encode())
    return REFUSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
