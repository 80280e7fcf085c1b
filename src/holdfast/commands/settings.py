"""What a sandbox is opened with: limits, toolchains and the environment of programs."""

import msgspec

from holdfast.core import Value

WALLS = (
    "landlock",
    "seccomp",
    "capabilities",
    "limits",
    "read-only",
    "read-only-proc",
    "hidden-processes",
    "hidden-layers",
    "network-namespace",
    "ipc-namespace",
    "no-nested-namespaces",
    "inotify-limit",
    "temporary-size",
    "memory-watch",
    "disk-watch",
    "process-watch",
)
"""The walls of a full sandbox that a test can leave out."""


class SandboxSettings(Value):
    """The limits of a sandbox and what programs in it can see besides the workspace."""

    memory_mb: int = 4096
    """Memory of all programs together, with what they keep in /tmp."""
    disk_mb: int = 8192
    """How much room programs can take on the disk of the layers."""
    processes: int = 512
    open_files: int = 4096
    file_mb: int = 2048
    """The largest file."""
    temporary_mb: int = 512
    """The size of /tmp and of /dev/shm."""
    toolchains: tuple[str, ...] = ("auto",)
    """Folders that programs can read, besides the system's; `auto` stands for the ones that are found."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables passed on from the host, by the caller's choice."""
    removed_walls: tuple[str, ...] = ()
    """For tests alone: walls of `WALLS` that are left out, to prove that an attack meets each of them."""
