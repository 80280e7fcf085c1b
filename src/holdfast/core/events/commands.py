"""Events of commands: programs that ran in the sandbox, what they changed, and the hosts they asked for.

Changes of the workspace stay in the `CallSettled` of the command; nothing is run again from these events.
"""

from holdfast.core.calls import BlobRef
from holdfast.core.decisions import Verdict
from holdfast.core.effects import JudgedEffect
from holdfast.core.events.base import Event
from holdfast.core.ids import PERSON, CallId, GrantId, Principal


class SandboxOpened(Event, tag="sandbox-opened"):
    """The session's command sandbox was opened; these protections are in force."""

    tier: str = ""
    walls: tuple[str, ...] = ()
    kernel: str = ""


class SandboxClosed(Event, tag="sandbox-closed"):
    """The command sandbox was closed, and every process in it stopped."""

    reason: str = ""


class CommandStarted(Event, tag="command-started"):
    """A program was started; `process` is set if it runs in the background."""

    call: CallId = CallId("")
    argv: tuple[str, ...] = ()
    cwd: str = "."
    hosts: tuple[str, ...] = ()
    process: str = ""
    name: str = ""


class CommandEnded(Event, tag="command-ended"):
    """A program ended. Neither a code nor a signal means that it did not start."""

    call: CallId = CallId("")
    code: int | None = None
    signal: str = ""
    is_timed_out: bool = False
    stopped_because: str = ""
    """Why it was stopped, such as `memory` or `disk`; empty if it was not."""
    output: BlobRef | None = None
    """The blob of its output, up to a limit; None if it printed nothing."""
    output_bytes: int = 0
    left_processes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_mb: int = 0


class ProcessEnded(Event, tag="process-ended"):
    """A background process ended, by itself or because it was stopped."""

    process: str = ""
    code: int | None = None
    signal: str = ""
    reason: str = ""


class EffectsJudged(Event, tag="effects-judged"):
    """The policy decided about each file that programs changed. Durable before any of it reaches the workspace."""

    call: CallId = CallId("")
    effects: tuple[JudgedEffect, ...] = ()


class HostJudged(Event, tag="host-judged"):
    """A program asked for a connection to a host."""

    call: CallId = CallId("")
    host: str = ""
    port: int = 0
    verdict: Verdict = "deny"
    rule: str = ""
    reason: str = ""
    grant: GrantId | None = None
    """The grant that covered it. Each connection that names one is a use."""


class CommitsProposed(Event, tag="commits-proposed"):
    """Commits made in the sandbox are offered to the person. Blobs hold the proposal and the bundle of their objects."""

    call: CallId = CallId("")
    ref: str = ""
    head: str = ""
    commits: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """The paths that any of them changes, up to a limit; first those of files that other programs run."""
    more_paths: int = 0
    """How many paths are not listed."""
    proposal: str = ""
    bundle: str = ""
    repository: str = "."
    """The folder of the repository, relative to the workspace."""


class CommitsAccepted(Event, tag="commits-accepted"):
    """The person accepted commits: their objects and this ref are in the repository."""

    ref: str = ""
    before: str = ""
    after: str = ""
    principal: Principal = PERSON
    repository: str = "."
