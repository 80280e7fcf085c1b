"""Seccomp: a permanent filter of the system calls of this process. Needs no privileges.

It imports nothing of Holdfast, so that a process can confine itself before it loads anything else. `seccomp_profiles`
and the callers decide which calls a filter allows.
"""

import ctypes
import errno
import os
import struct

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, FAIL, KILL = 0x7FFF0000, 0x00050000, 0x80000000
"""The results of a filter; FAIL is combined with an error number, KILL ends the process with SIGSYS."""
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_X32_BIT = 0x40000000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER_MODE = 38, 22, 2

_libc = ctypes.CDLL(None, use_errno=True)


def step(code: int, if_true: int = 0, if_false: int = 0, value: int = 0) -> bytes:
    """Encode one instruction of a filter."""
    return struct.pack("<HBBI", code, if_true, if_false, value)


def give_up_privileges() -> None:
    """Set no_new_privs, which a filter requires: no program started later has more rights than this one. Raises OSError."""
    _check(_libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")


def install(machine: str, steps: list[bytes]) -> None:
    """Filter every system call of this thread and all that it starts. Raises OSError.

    The steps start with the number of the system call loaded. A call of another architecture kills the process.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"system calls cannot be filtered on the architecture {machine}")
    program = [
        step(LOAD, value=_ARCHITECTURE_AT),
        step(JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        step(RETURN, value=KILL),
        step(LOAD, value=_NUMBER_AT),
        step(JUMP_GREATER_EQUAL, 0, 1, _X32_BIT),
        step(RETURN, value=KILL),
        *steps,
    ]
    code = ctypes.create_string_buffer(b"".join(program))
    head = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    _check(_libc.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(head), 0, 0), "seccomp")


def forbid(machine: str, calls: dict[int, int]) -> None:
    """Make these system calls, by number, fail with the given error; allow all others. Raises OSError."""
    steps: list[bytes] = []
    for number, error in calls.items():
        steps += [step(JUMP_EQUAL, 0, 1, number), step(RETURN, value=FAIL | error)]
    install(machine, [*steps, step(RETURN, value=ALLOW)])


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} refused: {os.strerror(number)}")
