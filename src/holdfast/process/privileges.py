"""What a process gives up about itself: privileges, capabilities, environment and the size of what it may make."""

import ctypes
import os
import resource
import struct

from holdfast.process.seccomp import give_up_privileges

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_CAPSET_X86_64_AND_ARM64 = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE = 1
_SIGKILL, _SIGXFSZ, _SIG_IGN = 9, 25, 1
"""By number: the module `signal` loads `enum`, and a worker is to start within milliseconds."""

_libc = ctypes.CDLL(None, use_errno=True)


def give_up(*, file_bytes: int, open_files: int, kept_capabilities: int = 0) -> None:
    """Keep no environment, no way to new privileges, and only these capabilities (a set of bits). Raises OSError."""
    os.environ.clear()
    _set_limits(file_bytes, open_files)
    _drop_capabilities(kept_capabilities)
    give_up_privileges()


def check_alone() -> None:
    """OSError where this process has threads: each wall holds for one thread and its children."""
    if len(os.listdir("/proc/self/task")) != 1:
        raise OSError(
            "a worker must confine itself before it has threads: each wall holds for one thread and its children"
        )


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, also if it died a moment ago."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "pdeathsig")
    if os.getppid() != parent:
        os._exit(1)


def _set_limits(file_bytes: int, open_files: int) -> None:
    for name, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(name, (most, most))
    # A file that grows too big is an error in the guest, not its death.
    _libc.signal(_SIGXFSZ, _SIG_IGN)


def _drop_capabilities(kept: int) -> None:
    if os.geteuid() != 0:
        return
    number = _CAPSET_X86_64_AND_ARM64.get(os.uname().machine)
    if number is None:
        return
    for capability in range(64):
        if not kept >> capability & 1:
            # Fails for numbers that this kernel does not know.
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    head = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("<IIIIII", kept, kept, 0, 0, 0, 0)
    if _libc.syscall(number, head, sets) != 0:
        # A root that never had the right (a container without it) gives up all of them.
        _checked(_libc.syscall(number, head, bytes(24)), "capset")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} refused: {os.strerror(number)}")
