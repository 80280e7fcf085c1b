"""What surrounds a piece of running code: top level, facts, budget, who notes its dependencies. It returns as control does."""

from dataclasses import dataclass
from typing import final

from holdfast.guests.lisp.artifacts import ArtifactStore
from holdfast.guests.lisp.budgets import Budget
from holdfast.guests.lisp.environment import Root
from holdfast.guests.lisp.facts import FactStore
from holdfast.guests.lisp.faults import Fault

MAX_DEPTH = 100
"""Of memos in memos: each look at a file is noted in all of them."""


@final
class Tracker:
    """Notes which files a memo's body looked at, with their fingerprints; what a part looked at, the whole did."""

    __slots__ = ("dependencies", "depth", "outer")

    def __init__(self, outer: "Tracker | None") -> None:
        self.dependencies: dict[str, str] = {}
        self.outer = outer
        self.depth: int = 1 if outer is None else outer.depth + 1
        if self.depth > MAX_DEPTH:
            raise Fault("too-deep", f"memos nest at most {MAX_DEPTH} deep")

    def knows(self, path: str) -> bool:
        """Whether a file is noted here and everywhere around."""
        tracker: Tracker | None = self
        while tracker is not None:
            if path not in tracker.dependencies:
                return False
            tracker = tracker.outer
        return True

    def note(self, path: str, fingerprint: str) -> None:
        """Note a file; the first look counts, for that is what the value may come from."""
        tracker: Tracker | None = self
        while tracker is not None:
            tracker.dependencies.setdefault(path, fingerprint)
            tracker = tracker.outer


@final
@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of running code; replaced, never changed."""

    root: Root
    facts: FactStore
    budget: Budget | None = None
    tracker: Tracker | None = None


@final
class State:
    """What lasts from run to run of a session."""

    __slots__ = ("artifacts", "facts", "root")

    def __init__(self, root: Root, facts: FactStore, artifacts: ArtifactStore) -> None:
        self.root, self.facts, self.artifacts = root, facts, artifacts
