"""Landlock: the kernel restricts which files this process can open. Needs no privileges.

It imports nothing of Holdfast, so that a process can confine itself before it loads anything else.
"""

import ctypes
import os
import struct

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_QUERY_VERSION = 1
_RULE_PATH_BENEATH, _RULE_PORT = 1, 2
_CONNECT_TCP = 0b10

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_ALL_SINCE_1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = _EXECUTE | _READ_FILE | _READ_DIR
"""Reading files and folders, and executing programs."""
WRITE = (_ALL_SINCE_1 | _REFER | _TRUNCATE) & ~READ
"""All changes to files and folders."""
MAKE_DEVICES = 1 << 6 | 1 << 11
"""Creating character and block devices."""
FILES_AND_FOLDERS = (
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
"""Working with files and folders, without executing programs and without creating devices, FIFOs, sockets or symlinks
(which tools of the host might follow)."""
RUN = _EXECUTE | _READ_FILE
"""Executing programs and loading libraries."""

EVERYTHING = READ | WRITE | _IOCTL_DEV
ALL_NETWORK = 0b11
_ALL_SCOPES = 0b11
"""Abstract sockets of, and signals to, processes outside."""

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the Landlock version that the kernel supports; 0 if it supports none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _QUERY_VERSION)))


def restrict(
    rights: dict[str, int],
    *,
    withheld: int = EVERYTHING,
    network: int = ALL_NETWORK,
    ports: tuple[int, ...] = (),
) -> int:
    """Restrict this thread, and every one it starts, to these paths and rights. Returns the version. Raises OSError.

    A path that does not exist or cannot be opened is left out, so it is not allowed. `withheld` are the rights that a path
    must have in `rights`; all other rights stay as they are. With `network` withheld, `ports` can still be connected to.
    """
    offered = version()
    if offered == 0:
        return 0
    handled = _known(offered) & withheld
    scopes = _ALL_SCOPES if offered >= 6 else 0
    attributes = struct.pack("<QQQ", handled, network if offered >= 4 else 0, scopes)
    size = 8 if offered < 4 else 16 if offered < 6 else 24
    rules = _checked(_libc.syscall(_CREATE_RULESET, attributes[:size], size, 0))
    try:
        for place, allowed in rights.items():
            _allow(rules, place, allowed & handled)
        for port in ports if network and offered >= 4 else ():
            reached = struct.pack("<QQ", _CONNECT_TCP, port)
            _checked(_libc.syscall(_ADD_RULE, rules, _RULE_PORT, reached, 0))
        _checked(_libc.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)
    return offered


def _allow(rules: int, place: str, allowed: int) -> None:
    try:
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fitting = allowed if os.path.isdir(place) else allowed & _OF_A_FILE
        beneath = struct.pack("<Qi", fitting, opened)
        _checked(_libc.syscall(_ADD_RULE, rules, _RULE_PATH_BENEATH, beneath, 0))
    finally:
        os.close(opened)


def _known(offered: int) -> int:
    known = _ALL_SINCE_1
    if offered >= 2:
        known |= _REFER
    if offered >= 3:
        known |= _TRUNCATE
    if offered >= 5:
        known |= _IOCTL_DEV
    return known


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock refused: {os.strerror(number)}")
    return result
