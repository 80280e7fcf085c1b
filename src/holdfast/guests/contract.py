"""What every guest promises: it runs code that nobody trusts, and its only way out is the callable it is handed.

A guest belongs to one session and keeps its variables across runs. When a call is answered with `Parked`, it snapshots
itself and stops; `resume` goes on in the middle of the line, also in another process.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

from holdfast.core import Answer, Change, Json, JsonObject, Tool, Value

OnCall = Callable[[str, JsonObject], Awaitable[Answer]]
"""The one step upward: operation and arguments in, answer out."""

StagedContents = Callable[[], Mapping[str, bytes | None]]
"""What is staged over the workspace and not yet committed: the content of each file, None where it is deleted."""


class GuestLimits(Value):
    """Bounds of one run. `seconds` counts the guest's own running time, `wall_seconds` everything but waiting for calls."""

    seconds: float = 5.0
    """Of computing."""
    wall_seconds: float = 30.0
    """Of everything, sleep included, but waiting for calls."""
    memory_bytes: int = 256 << 20
    """Of its values."""
    output_bytes: int = 256 << 10
    """Of what it prints."""
    calls: int = 1000
    """Of tools, files included."""
    steps: int | None = None
    """What a step is depends on the engine: a statement, an instruction, a reduction."""


class Capabilities(Value):
    """What an engine can do, as facts for the record and for `doctor`."""

    engine: str
    version: str
    language: str
    has_snapshot: bool
    """Whether it can stop in the middle of a call and go on in another process."""
    judges_files: bool
    """Whether each file operation passes the gate; otherwise files are confined to the workspace."""
    checks_types: bool = False
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> tuple[str, ...]:
        """All of it in words, for the record."""
        claims = {
            "goes on after a wait in another process": self.has_snapshot,
            "each file operation is judged": self.judges_files,
            "checks types before it runs": self.checks_types,
        }
        return (
            f"{self.engine} {self.version}",
            *(claim for claim, holds in claims.items() if holds),
            *self.notes,
        )


class RunRequest(Value):
    """Code to run, and what makes a second run of it the same run."""

    code: str
    tools: tuple[Tool, ...] = ()
    limits: GuestLimits = GuestLimits()
    seed: int = 0
    now_ms: int = 0


class Run(Value):
    """How a run ended. `value` is the last expression's, `error` an honest traceback, `printed` all output of the run,
    bounded; after a wait that includes what was printed before it.
    """

    status: Literal["ok", "error", "limit", "lost", "parked", "refused"]
    """`refused`: the engine turned the code down before anything ran (syntax, types, unsupported)."""
    value: Json = None
    printed: str = ""
    error: str = ""
    snapshot: bytes | None = None
    """Of a parked run; None where the engine cannot: then it goes on by replay."""
    changes: tuple[Change, ...] = ()
    """Files changed without passing the gate, where the engine works on a folder."""
    steps: int = 0
    """What the run used of `GuestLimits.steps`, where the engine counts them."""
    is_unsupported: bool = False
    """Of a refused run: the code may be fine, but this engine does not have what it uses."""
    engine: str = ""
    """Which engine ran it, where one was chosen for this code; empty where there was no choice."""
    engine_reason: str = ""
    """Why that one was chosen."""


class Guest(Protocol):
    """Untrusted code of one session, and the engine that runs it."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        """Run code to its end, to a limit, or to a call that waits. Cancelling the task stops the code.

        Raises EngineUnready, before anything ran, where the engine has to be built first.
        """
        ...

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        """Go on with a parked run, giving the waiting call its answer. Raises SnapshotRefused."""
        ...

    async def snapshot(self) -> bytes:
        """The state between runs, sealed; empty where nothing was ever run."""
        ...

    async def restore(self, state: bytes) -> None:
        """Take up a state from `snapshot`. Raises SnapshotRefused, and EngineUnready as `run` does."""
        ...

    async def close(self) -> None:
        """Free everything. Idempotent."""
        ...


class Engine(Protocol):
    """Makes guests; one for the whole process."""

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do."""
        ...

    def guest(self) -> Guest:
        """A fresh guest for a session."""
        ...

    async def close(self) -> None:
        """Stop every worker. Idempotent."""
        ...
