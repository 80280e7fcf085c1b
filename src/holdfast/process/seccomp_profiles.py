"""Seccomp profiles: the system calls that a worker can make. All others fail with EPERM.

The profiles are allow-lists, because a new kernel adds new calls. Each lists what its engine uses once it is loaded. No
profile contains fork, sockets, ptrace, mounts, io_uring, symlinks or signals to other processes.
"""

import ctypes
import errno
import os
import sys

from holdfast.process.seccomp import (
    ALLOW,
    FAIL,
    JUMP_EQUAL,
    JUMP_GREATER_EQUAL,
    JUMP_SET,
    KILL,
    LOAD,
    RETURN,
    install,
    step,
)

_FIRST_ARGUMENT_AT = 16
_THIRD_ARGUMENT_AT, _THIRD_ARGUMENT_HIGH_AT = 32, 36
_CLONE_THREAD = 0x00010000
_AT_EMPTY_PATH = 0x1000
_NO_DESCRIPTOR = 0xFFFFFFFF

_WRITE, _CLONE, _PRLIMIT, _EXECVEAT, _CLONE3 = 1, 56, 302, 322, 435
_EXECVEAT_ELSEWHERE = 281  # newer architectures share one table

COMPUTE = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "readv": 19, "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28,
    "nanosleep": 35, "getpid": 39, "exit": 60, "uname": 63, "fcntl": 72, "getuid": 102, "getgid": 104, "geteuid": 107,
    "getegid": 108, "sigaltstack": 131, "arch_prctl": 158, "gettid": 186, "futex": 202, "sched_getaffinity": 204,
    "set_tid_address": 218, "restart_syscall": 219, "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231,
    "openat": 257, "newfstatat": 262, "set_robust_list": 273, "getrandom": 318, "statx": 332, "rseq": 334,
}  # fmt: skip
"""For a program that starts after the confinement, with any loader, uses its pipes and computes. x86-64."""

WORK_ON_FILES = {
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25,
    "madvise": 28, "dup": 32, "nanosleep": 35, "setitimer": 38, "getpid": 39, "sendto": 44, "recvfrom": 45,
    "sendmsg": 46, "recvmsg": 47, "exit": 60, "fcntl": 72, "flock": 73, "fsync": 74, "fdatasync": 75,
    "ftruncate": 77, "getdents": 78, "getcwd": 79, "rename": 82, "mkdir": 83, "rmdir": 84, "unlink": 87,
    "readlink": 89, "getrlimit": 97, "sigaltstack": 131, "gettid": 186, "readahead": 187, "futex": 202,
    "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219, "fadvise64": 221, "clock_gettime": 228,
    "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233,
    "openat": 257, "mkdirat": 258, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265,
    "readlinkat": 267, "faccessat": 269, "set_robust_list": 273, "utimensat": 280, "epoll_pwait": 281,
    "fallocate": 285, "eventfd2": 290, "epoll_create1": 291, "preadv": 295, "pwritev": 296, "renameat2": 316,
    "getrandom": 318, "membarrier": 324, "copy_file_range": 326, "preadv2": 327, "pwritev2": 328, "statx": 332,
    "rseq": 334, "openat2": 437, "faccessat2": 439, "epoll_pwait2": 441,
}  # fmt: skip
"""For a loaded process that works on the files of a folder: CPython, threads of glibc, wasmtime. x86-64."""

_MACHINE = os.uname().machine  # read once, because the filter blocks the call
_libc = ctypes.CDLL(None, use_errno=True)


def is_known_here() -> bool:
    """Whether there are profiles for this machine; system call numbers differ between architectures."""
    return sys.platform == "linux" and _MACHINE == "x86_64"


def restrict(
    allowed: dict[str, int], *, start_descriptor: int | None = None, write_bytes: int | None = None
) -> bool:
    """Restrict this thread, and every one it starts, to the calls of a profile. Returns False if there is no profile.

    With `start_descriptor`, it can also execute the program behind that descriptor. A `write` of more than `write_bytes` at once
    ends the process with SIGSYS.
    """
    if not is_known_here():
        return False
    start = _NO_DESCRIPTOR if start_descriptor is None else start_descriptor
    bound = [] if write_bytes is None else _bounded_write(write_bytes)
    install(_MACHINE, [*bound, *_steps(sorted(allowed.values()), start)])
    return True


def start(descriptor: int, arguments: list[str]) -> None:
    """Execute the program behind a descriptor, without an environment. Returns only by raising OSError."""
    words = (ctypes.c_char_p * (len(arguments) + 1))(*(word.encode() for word in arguments), None)
    nothing = (ctypes.c_char_p * 1)(None)
    call = _EXECVEAT if _MACHINE == "x86_64" else _EXECVEAT_ELSEWHERE
    _libc.syscall(call, descriptor, b"", words, nothing, _AT_EMPTY_PATH)
    number = ctypes.get_errno()
    raise OSError(number, f"cannot start {arguments[0]!r}: {os.strerror(number)}")


def _steps(allowed: list[int], start: int) -> list[bytes]:
    """Build the filter: clone creates only threads, the listed calls are allowed, all others fail."""
    head = [
        # ENOSYS, so that glibc falls back to clone, whose flags a filter can inspect.
        step(JUMP_EQUAL, 0, 1, _CLONE3),
        step(RETURN, value=FAIL | errno.ENOSYS),
        *_if_first_argument(_CLONE, step(JUMP_SET, 0, 1, _CLONE_THREAD)),
        *_if_first_argument(_PRLIMIT, step(JUMP_EQUAL, 0, 1, 0)),  # only its own limits
        *_if_first_argument(_EXECVEAT, step(JUMP_EQUAL, 0, 1, start)),
    ]
    listed = [step(JUMP_EQUAL, len(allowed) - place, 0, number) for place, number in enumerate(allowed)]
    return [*head, *listed, step(RETURN, value=FAIL | errno.EPERM), step(RETURN, value=ALLOW)]


def _if_first_argument(call: int, condition: bytes) -> list[bytes]:
    """Allow a call if its first argument meets a condition; otherwise it fails with EPERM."""
    return [
        step(JUMP_EQUAL, 0, 4, call),
        step(LOAD, value=_FIRST_ARGUMENT_AT),
        condition,
        step(RETURN, value=ALLOW),
        step(RETURN, value=FAIL | errno.EPERM),
    ]


def _bounded_write(most: int) -> list[bytes]:
    """Allow `write` up to a number of bytes and kill the process beyond it. Reads the number in two halves, of 32 bits each."""
    return [
        step(JUMP_EQUAL, 0, 6, _WRITE),
        step(LOAD, value=_THIRD_ARGUMENT_HIGH_AT),
        step(JUMP_EQUAL, 0, 3, 0),
        step(LOAD, value=_THIRD_ARGUMENT_AT),
        step(JUMP_GREATER_EQUAL, 1, 0, most + 1),
        step(RETURN, value=ALLOW),
        step(RETURN, value=KILL),
    ]
