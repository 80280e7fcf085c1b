"""Landlock: the kernel's own list of files that this process may still open. Works without privileges."""

import ctypes
import os
import struct
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_QUERY_VERSION = 1
_RULE_PATH_BENEATH = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_ALL_SINCE_1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ALL_NETWORK = 0b11
_ALL_SCOPES = 0b11
"""Abstract sockets and signals to processes outside."""

_WORKSPACE = (
    _WRITE_FILE
    | _READ_FILE
    | _READ_DIR
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_REG
    | _REFER
    | _TRUNCATE
)
"""Files and folders. No programs, no devices, FIFOs or sockets, and no symlinks: host tools might follow one."""

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The version of Landlock that this kernel offers; 0 where it offers none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _QUERY_VERSION)))


def restrict_to(workspace: Path) -> int:
    """From here on this thread, and every one it starts, opens nothing but what lies in the workspace. Returns the version."""
    offered = version()
    if offered == 0:
        return 0
    handled = _handled(offered)
    network = _ALL_NETWORK if offered >= 4 else 0
    scopes = _ALL_SCOPES if offered >= 6 else 0
    attributes = struct.pack("<QQQ", handled, network, scopes)
    size = 8 if offered < 4 else 16 if offered < 6 else 24
    rules = _checked(_libc.syscall(_CREATE_RULESET, attributes[:size], size, 0))
    folder = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        beneath = struct.pack("<Qi", _WORKSPACE & handled, folder)
        _checked(_libc.syscall(_ADD_RULE, rules, _RULE_PATH_BENEATH, beneath, 0))
        _checked(_libc.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(folder)
        os.close(rules)
    return offered


def _handled(offered: int) -> int:
    handled = _ALL_SINCE_1
    if offered >= 2:
        handled |= _REFER
    if offered >= 3:
        handled |= _TRUNCATE
    if offered >= 5:
        handled |= _IOCTL_DEV
    return handled


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock refused: {os.strerror(number)}")
    return result
