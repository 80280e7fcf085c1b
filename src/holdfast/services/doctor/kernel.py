"""Checks of the kernel features that path resolution, sandboxes and approvals by file need. Each one is tried."""

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterator

from holdfast.services.doctor.check_result import CheckResult

_OPENAT2, _LANDLOCK_CREATE_RULESET = 437, 444
_AT_FDCWD = -100
_QUERY_VERSION = 1
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_IN_CLOEXEC = os.O_CLOEXEC


class _How(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def check_kernel() -> Iterator[CheckResult]:
    """Check openat2, Landlock, seccomp and inotify."""
    if not sys.platform.startswith("linux"):
        yield CheckResult(
            part="kernel",
            state="bad",
            detail=f"{sys.platform} is not supported",
            fix="run Holdfast on Linux, for example in a virtual machine",
        )
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for name, tried, without, fix in _FEATURES:
        found = tried(libc)
        if found:
            yield CheckResult(part="kernel", state="ok", detail=f"{name}: {found}")
        else:
            yield CheckResult(part="kernel", state="note", detail=f"{name} is missing: {without}", fix=fix)


def _openat2(libc: ctypes.CDLL) -> str:
    how = _How(os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, 0)
    descriptor = libc.syscall(_OPENAT2, _AT_FDCWD, b".", ctypes.byref(how), ctypes.sizeof(how))
    if descriptor < 0:
        return ""
    os.close(descriptor)
    return "the kernel resolves paths in one step"


def _landlock(libc: ctypes.CDLL) -> str:
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _QUERY_VERSION)
    return f"version {version}" if version > 0 else ""


def _seccomp(libc: ctypes.CDLL) -> str:
    # A filter at address 0 is never installed: a kernel with seccomp rejects the address, one without rejects the call.
    libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, None, 0, 0)
    return "system calls can be filtered" if ctypes.get_errno() == errno.EFAULT else ""


def _inotify(libc: ctypes.CDLL) -> str:
    descriptor = libc.inotify_init1(_IN_CLOEXEC)
    if descriptor < 0:
        return ""
    os.close(descriptor)
    return "approvals by file are noticed at once"


_FEATURES: tuple[tuple[str, Callable[[ctypes.CDLL], str], str, str], ...] = (
    (
        "openat2",
        _openat2,
        "paths are resolved step by step, which is as safe but slower",
        "Linux 5.6 has it; a container may filter it: allow the call in its seccomp profile",
    ),
    (
        "landlock",
        _landlock,
        "sandboxes run without their second layer of file confinement",
        "Linux 5.13 has it; boot with lsm=landlock,... or allow its calls in the container",
    ),
    (
        "seccomp",
        _seccomp,
        "sandboxes run without their second layer of system call filtering",
        "use a kernel with CONFIG_SECCOMP_FILTER",
    ),
    (
        "inotify",
        _inotify,
        "approvals by file cannot be watched for",
        "raise fs.inotify.max_user_instances with sysctl",
    ),
)
