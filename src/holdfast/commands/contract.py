"""The contract of a command sandbox: one per session, opened at its first command, closed with the session.

A program sees the workspace as base files plus staged changes, at the workspace's own path, and changes only layers. The
sandbox reports what a program changed; the gate judges each change by the rules for `world.write` and `world.delete`, and the
caller then writes, stages or drops it. The sandbox itself judges nothing and never touches the base.
"""

import socket
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from holdfast.core import FileEffect as FileEffect
from holdfast.core import SandboxTier as SandboxTier
from holdfast.core import Value

OnOutput = Callable[[bytes], None]
"""Receives output as it arrives. Called on the event loop; must not block."""


class SandboxStatus(Value):
    """The sandbox of this machine: for `doctor`, the journal and the rule test `tier`."""

    tier: SandboxTier
    walls: tuple[str, ...] = ()
    """The protections in force, such as `user-namespace`, `overlay`, `landlock-7`, `seccomp`, `network-namespace`."""
    kernel: str = ""
    missing: tuple[str, ...] = ()
    """What a stronger tier would need, in words."""
    hint: str = ""
    """The way to a stronger tier; empty for `full`."""


class CommandRequest(Value):
    """One program to run. A script is already `("bash", "-c", script)` here."""

    argv: tuple[str, ...]
    cwd: str = "."
    """Relative to the workspace."""
    environment: dict[str, str]
    """Added to the environment that the sandbox builds; nothing is inherited from the host."""
    stdin: bytes | None = None
    """None: standard input is closed."""
    timeout_seconds: float = 120.0
    has_terminal: bool = False


class CommandOutcome(Value):
    """How a program ended. Exactly one of `code` and `signal` is set, unless it did not start."""

    code: int | None = None
    signal: str = ""
    is_timed_out: bool = False
    stopped_because: str = ""
    """Why the supervisor stopped it: `memory`, `disk`, `processes` or empty."""
    output_bytes: int = 0
    """All output, also what was not kept."""
    left_processes: int = 0
    """Processes that the program left behind and the supervisor stopped."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_mb: int = 0


class ProcessStatus(Value):
    """A background process that lives across calls."""

    id: str
    name: str
    argv: tuple[str, ...]
    is_running: bool
    started_ms: int
    ports: tuple[int, ...] = ()
    """Ports of the sandbox's own loopback on which it listens."""
    outcome: CommandOutcome | None = None


class StagedFile(Value):
    """A staged change to show to programs: the content, or None if the file is deleted."""

    path: str
    content: bytes | None
    mode: int | None = None
    """LINK_MODE: a symlink, whose content is its target."""


class NotCollected(Value):
    """Something that programs made and that cannot become a change: a link to the outside, a FIFO, a huge file, a hidden file."""

    path: str
    because: str


class CollectedChanges(Value):
    """What programs changed since the last `show` of the staged workspace."""

    effects: tuple[FileEffect, ...] = ()
    scratch: tuple[str, ...] = ()
    """Changed paths that git ignores, and `.git`: they persist for later commands and are never proposed."""
    not_collected: tuple[NotCollected, ...] = ()


class HostVerdict(Value):
    """Whether a program may connect to a host. `reason` is what the program's proxy client is shown."""

    is_allowed: bool
    reason: str = ""
    rule: str = ""
    allows_private: bool = False
    """Whether the host may be in a private network: the person's own configuration names it. Loopback never is."""


class JudgeHost(Protocol):
    """Judges a connection to a canonical host name and port. May wait for a person; the connection is held meanwhile."""

    async def __call__(self, host: str, port: int, address: str = "") -> HostVerdict:
        """With `address`: the host is allowed, and that address, where it lies, is not public."""
        ...


class CommandSandbox(Protocol):
    """Runs programs over the staged workspace. All methods raise CommandError if the sandbox cannot start or has died."""

    @property
    def status(self) -> SandboxStatus:
        """The tier and the walls in force."""
        ...

    async def show(self, staged: Sequence[StagedFile], *, hidden: Collection[str] = ()) -> None:
        """Make programs see base plus `staged`, without the `hidden` files. Drops earlier changes except scratch."""
        ...

    async def run(self, request: CommandRequest, *, on_output: OnOutput) -> CommandOutcome:
        """Run a program to its end and stop what it left behind. Cancelling stops its whole process tree first."""
        ...

    async def start(
        self,
        request: CommandRequest,
        *,
        name: str,
        on_output: OnOutput,
        channel: socket.socket | None = None,
    ) -> str:
        """Start a background process and return its id. A `channel` to the host becomes its standard input.

        A process with a channel is part of the host's own work: `stop` also removes it from `processes`.
        """
        ...

    async def write(self, process: str, data: bytes) -> None:
        """Write to the standard input or terminal of a background process."""
        ...

    async def signal(self, process: str, name: str) -> None:
        """Send a signal (`SIGINT`, `SIGTERM`, ...) to a background process."""
        ...

    async def stop(self, process: str) -> CommandOutcome:
        """Stop a background process and everything it started."""
        ...

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The background processes, running or ended."""
        ...

    async def collect(self) -> CollectedChanges:
        """What programs changed since the last `show` or `collect`, read by descriptors while every process is stopped."""
        ...

    def read_changed(self, path: str) -> bytes:
        """The content of a collected effect. Raises CommandError if it is no longer what was collected."""
        ...

    async def listen(self, port: int = 0) -> tuple[socket.socket, int]:
        """A socket that listens on the sandbox's own loopback, and its port: programs reach the host by it. 0: any port."""
        ...

    async def connect(self, port: int) -> socket.socket:
        """A connection from the host to a port of the sandbox's own loopback, for previews."""
        ...

    async def drop_scratch(self) -> None:
        """Empty scratch: after a rewind it belongs to no restore point."""
        ...

    async def close(self) -> None:
        """Stop every process and remove the mounts. The layers stay for the next opening."""
        ...
