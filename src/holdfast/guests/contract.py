"""The contract of guests and engines: a guest runs untrusted code, and reaches the host only through `on_call`.

A guest belongs to one session and keeps its variables across runs. If a call is answered with `Parked`, the guest takes a
snapshot and stops. `resume` continues in the middle of the line, also in another process.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Literal, Protocol

import msgspec

from holdfast.core import Answer, Change, Json, JsonObject, Tool, Value
from holdfast.core.errors import InvalidInput

OnCall = Callable[[str, JsonObject], Awaitable[Answer]]
"""How a guest calls the host: operation and arguments in, answer out."""

CALL_PLACE: ContextVar[tuple[int, int] | None] = ContextVar("CALL_PLACE", default=None)
"""Where the call that is being made stands in the program: start and end in UTF-8 bytes (Python), or line and column (Lisp). An engine
that knows sets it around `on_call`; None for a call that the program does not show, such as one of a function of an earlier run."""

StagedContents = Callable[[], Mapping[str, bytes | None]]
"""The changes that are staged over the workspace: the content of each changed file, None if it is deleted."""


MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS = 1, 300
"""The range of a time limit that a host gives to one run."""


class GuestLimits(Value):
    """Limits of one run. Waiting for the answers of calls never counts."""

    seconds: float = 5.0
    """Computing time."""
    wall_seconds: float = 30.0
    """Total time, including sleep."""
    memory_bytes: int = 512 << 20
    """Memory for the values of the code."""
    output_bytes: int = 256 << 10
    """What the code prints."""
    value_bytes: int = 64 << 20
    """What one call takes or returns, such as a file that is read or written as one text. At most 256 MB."""
    calls: int = 1000
    """Calls of tools, including file operations."""
    steps: int | None = None
    """What a step is depends on the engine: an instruction (wasi) or a reduction (lisp). python does not count steps."""

    def __post_init__(self) -> None:
        for name in ("seconds", "wall_seconds"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"the limit {name} of code must be more than 0, not {getattr(self, name)}")

    def with_timeout(self, seconds: float) -> "GuestLimits":
        """The limits of a run that a host gives this much time. It replaces default limits; a configured limit stays an upper bound."""
        defaults = GuestLimits()
        wall = seconds if self.wall_seconds == defaults.wall_seconds else min(seconds, self.wall_seconds)
        # Not below the default: an interpreter may keep the computing time of its first run.
        computing = max(self.seconds, wall) if self.seconds == defaults.seconds else self.seconds
        return msgspec.structs.replace(self, seconds=computing, wall_seconds=wall)


def check_timeout(seconds: object, *, most: float = MAX_TIMEOUT_SECONDS) -> float:
    """A time limit for one run, in seconds. Raises InvalidInput if it is not a number in range."""
    is_truth = isinstance(seconds, bool)
    if isinstance(seconds, int | float) and not is_truth and MIN_TIMEOUT_SECONDS <= seconds <= most:
        return float(seconds)
    allowed = f"a number of seconds from {MIN_TIMEOUT_SECONDS} to {most}"
    raise InvalidInput(f"the time limit of a run is {allowed}, not {seconds!r:.40}")


class Capabilities(Value):
    """What an engine can do, for the journal and for `holdfast doctor`."""

    engine: str
    version: str
    language: str
    has_snapshot: bool
    """Whether a run that waits for a call can resume in another process."""
    judges_files: bool
    """Whether each file operation passes the gate. If not, files are confined to the workspace."""
    checks_types: bool = False
    follows_values: bool = False
    """Whether it says where in the program each call stands, so that the origin of each argument can be found."""
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> tuple[str, ...]:
        """The capabilities in words, for the journal."""
        claims = {
            "resumes in another process": self.has_snapshot,
            "each file operation is judged": self.judges_files,
            "checks types before it runs": self.checks_types,
        }
        return (
            f"{self.engine} {self.version}",
            *(claim for claim, holds in claims.items() if holds),
            *self.notes,
        )


class RunRequest(Value):
    """Code to run, and the seed and clock that make a second run behave the same."""

    code: str
    tools: tuple[Tool, ...] = ()
    limits: GuestLimits = GuestLimits()
    seed: int = 0
    now_ms: int = 0


class Run(Value):
    """How a run ended. `value` is that of the last expression, `error` the traceback, and `printed` all output within its limit,
    including what was printed before a wait.
    """

    status: Literal["ok", "error", "limit", "lost", "parked", "refused"]
    """`refused`: the engine rejected the code before anything ran (syntax, types, unsupported)."""
    value: Json = None
    printed: str = ""
    error: str = ""
    snapshot: bytes | None = None
    """The snapshot of a parked run; None if the engine has none, and the run resumes by replay."""
    changes: tuple[Change, ...] = ()
    """Files that changed without passing the gate, if the engine works on a folder."""
    dropped: tuple[str, ...] = ()
    """What the run changed and the host did not keep, a sentence for each."""
    steps: int = 0
    """What the run used of `GuestLimits.steps`, if the engine counts them."""
    is_unsupported: bool = False
    """For a refused run: the code may be correct, but this engine does not support what it needs."""
    engine: str = ""
    """The engine that was chosen for this code; empty if there was no choice."""
    engine_reason: str = ""
    """Why it was chosen."""


class Guest(Protocol):
    """Runs the untrusted code of one session."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        """Run code to its end, to a limit, or to a call that waits. Cancelling the task stops the code.

        Raises EngineNotBuilt, before anything runs, if the engine must be built first.
        """
        ...

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        """Resume a parked run with the answer to the call that waits. Raises SnapshotRefused."""
        ...

    async def snapshot(self) -> bytes:
        """The signed state between runs; empty if nothing was ever run."""
        ...

    async def restore(self, state: bytes) -> None:
        """Load a state from `snapshot`. Raises SnapshotRefused, and EngineNotBuilt as `run` does."""
        ...

    async def close(self) -> None:
        """Release all resources. Idempotent."""
        ...


class Engine(Protocol):
    """Creates guests. One engine serves the whole process."""

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do."""
        ...

    def guest(self) -> Guest:
        """A new guest for a session."""
        ...

    async def close(self) -> None:
        """Stop every worker. Idempotent."""
        ...
