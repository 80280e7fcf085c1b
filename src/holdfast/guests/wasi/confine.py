"""Everything that a worker gives up before untrusted code runs in it, in the order that works.

WebAssembly is the wall; this is the moat below it. Should wasmtime have a hole, the process behind it can open one
folder, start nothing, reach no network and see no environment.
"""

import ctypes
import os
import resource
import signal
import struct
from pathlib import Path

import holdfast.guests.wasi.landlock as landlock
import holdfast.guests.wasi.seccomp as seccomp

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAPSET_X86_64_AND_ARM64 = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_OVERRIDE = 1
_MAX_OPEN_FILES = 256

_libc = ctypes.CDLL(None, use_errno=True)


def confine(*, workspace: Path, file_bytes: int) -> tuple[str, ...]:
    """Give up what a guest never needs; returns what is in force. Raises OSError where the kernel has a wall and refuses it."""
    if len(os.listdir("/proc/self/task")) != 1:
        raise OSError(
            "a worker must confine itself before it has threads: each wall holds for one thread and its children"
        )
    os.environ.clear()
    _set_limits(file_bytes)
    _drop_capabilities()
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    version = landlock.restrict_to(workspace)
    has_filter = seccomp.restrict()
    return in_force(landlock_version=version, has_filter=has_filter)


def in_force(*, landlock_version: int, has_filter: bool) -> tuple[str, ...]:
    """The walls as facts for the record."""
    return (
        f"landlock version {landlock_version}" if landlock_version else "no landlock: this kernel has none",
        "seccomp allow-list" if has_filter else "no seccomp: no list for this architecture",
        "no environment, no new privileges, no capabilities",
    )


def expected() -> tuple[str, ...]:
    """What `confine` will put in force on this machine."""
    return in_force(landlock_version=landlock.version(), has_filter=seccomp.is_known_here())


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, also if it died a moment ago."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "pdeathsig")
    if os.getppid() != parent:
        os._exit(1)


def _set_limits(file_bytes: int) -> None:
    for name, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(name, (most, most))
    signal.signal(
        signal.SIGXFSZ, signal.SIG_IGN
    )  # a file that grows too big is an error in the guest, not its death


def _drop_capabilities() -> None:
    """Keep at most the right to write files of other owners: a container's root works on a folder of the user's."""
    if os.geteuid() != 0:
        return
    number = _CAPSET_X86_64_AND_ARM64.get(os.uname().machine)
    if number is None:
        return
    for capability in range(64):
        if capability != _CAP_DAC_OVERRIDE:
            _libc.prctl(
                _PR_CAPBSET_DROP, capability, 0, 0, 0
            )  # fails for numbers that this kernel does not know
    kept = 1 << _CAP_DAC_OVERRIDE
    head = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("<IIIIII", kept, kept, 0, 0, 0, 0)
    if _libc.syscall(number, head, sets) != 0:
        # A root that never had the right (a container without it) gives up all of them.
        _checked(_libc.syscall(number, head, bytes(24)), "capset")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} refused: {os.strerror(number)}")
