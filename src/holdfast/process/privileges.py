"""What a process gives up: privileges, capabilities, environment, and the size and number of files."""

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
"""As numbers, because the module `signal` loads `enum`, and a worker must start within milliseconds."""

_libc = ctypes.CDLL(None, use_errno=True)


def give_up(*, file_bytes: int, open_files: int, kept_capabilities: int = 0) -> None:
    """Give up the environment, new privileges and all capabilities but these (a bit set), and set limits. Raises OSError."""
    os.environ.clear()
    _set_limits(file_bytes, open_files)
    if os.geteuid() == 0:
        drop_capabilities(kept_capabilities)
    give_up_privileges()


def check_alone() -> None:
    """Raise OSError if this process has threads: confinement applies to one thread and its children."""
    if len(os.listdir("/proc/self/task")) != 1:
        raise OSError(
            "a worker must confine itself before it starts threads: confinement applies to one thread and its children"
        )


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the parent dies, even if that happened a moment ago."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "pdeathsig")
    if os.getppid() != parent:
        os._exit(1)


def drop_capabilities(kept: int = 0) -> None:
    """Give up all capabilities but these (a bit set), also for every program started later. Raises OSError."""
    number = _CAPSET_X86_64_AND_ARM64.get(os.uname().machine)
    if number is None:
        return
    for capability in range(64):
        is_kept = kept >> capability & 1
        # Fails for numbers that the kernel does not know, and where there is no right to drop any.
        if not is_kept and _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    head = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("<IIIIII", kept, kept, 0, 0, 0, 0)
    if _libc.syscall(number, head, sets) != 0:
        # Root in a container that lacks these capabilities gives up all of them.
        _checked(_libc.syscall(number, head, bytes(24)), "capset")


def _set_limits(file_bytes: int, open_files: int) -> None:
    for name, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(name, (most, most))
    # A file that exceeds the limit is an error for the guest, and must not kill it.
    _libc.signal(_SIGXFSZ, _SIG_IGN)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} refused: {os.strerror(number)}")
