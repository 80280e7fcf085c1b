"""System calls that the standard library lacks: mounts, namespaces and process control."""

import ctypes
import os
import struct

NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXECUTE = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH = 2

SET_DEATH_SIGNAL, SET_DUMPABLE, SET_SUBREAPER = 1, 4, 36
LAST_DESCRIPTOR = 0x7FFFFFFF
_CLOSE_RANGE = 436
_MOUNT_SETATTR, _CURRENT_FOLDER, _AT_RECURSIVE = 442, -100, 0x8000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system. Raises OSError."""
    result = _libc.mount(
        source.encode("utf-8", "surrogateescape"),
        target.encode("utf-8", "surrogateescape"),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode("utf-8", "surrogateescape") or None,
    )
    _check(result, f"mount {kind or source} at {target}")


def make_read_only(target: str) -> None:
    """Make a mount, and all below it, read-only and without set-user-ID programs. Raises OSError."""
    attributes = struct.pack("<QQQQ", READ_ONLY | NO_SUID, 0, 0, 0)
    path = target.encode("utf-8", "surrogateescape")
    result = _libc.syscall(_MOUNT_SETATTR, _CURRENT_FOLDER, path, _AT_RECURSIVE, attributes, len(attributes))
    _check(result, f"make {target} read-only")


def unmount(target: str, *, detach: bool = False) -> None:
    """Unmount a file system; with `detach` also one that is busy, with everything mounted below it. Raises OSError."""
    _check(
        _libc.umount2(target.encode("utf-8", "surrogateescape"), _DETACH if detach else 0),
        f"unmount {target}",
    )


def unshare(namespaces: int) -> None:
    """Move this process into new namespaces. Raises OSError."""
    _check(_libc.unshare(namespaces), "new namespaces")


def enter_root(folder: str) -> None:
    """Make a folder the root and detach the old root. Raises OSError."""
    os.chdir(folder)
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    unmount(".", detach=True)
    os.chdir("/")


def control(option: int, value: int) -> None:
    """Call prctl. Raises OSError."""
    _check(_libc.prctl(option, value, 0, 0, 0), f"prctl {option}")


def close_range(first: int, last: int) -> None:
    """Close all descriptors of a range, open or not."""
    if first <= last:
        _check(_libc.syscall(_CLOSE_RANGE, first, last, 0), "close_range")


def set_host_name(name: str) -> None:
    """Set the host name of this UTS namespace. Raises OSError."""
    _check(_libc.sethostname(name.encode(), len(name)), "sethostname")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def remove_shared_memory(segment: int) -> None:
    """Remove a System V segment, if it still exists."""
    _libc.shmctl(segment, 0, None)
