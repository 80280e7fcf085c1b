"""What `memo` keeps: values with the state of the world they were computed from. The least recently used one goes first.

What a program has asserted: a set that only grows.

What surrounds a piece of running code: top level, facts, budget, who notes its dependencies. It returns as control does.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import final

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lang.equality import Allowance, canonical, signature
from holdfast.guests.lisp.vm.environment import Root
from holdfast.guests.lisp.vm.limits import Budget


@final
class Fact:
    """Something asserted, with what speaks for it, and when. A keyed fact also has a value, and keeps it."""

    __slots__ = ("asserted_ms", "evidence", "expression", "value")

    def __init__(self, expression: Datum, evidence: Datum, value: Datum, asserted_ms: int) -> None:
        self.expression, self.evidence, self.value = expression, evidence, value
        self.asserted_ms = asserted_ms


@final
class FactStore:
    """Facts in the order they came. Nothing is ever taken back."""

    __slots__ = ("facts",)

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}

    def add(self, key: str, fact: Fact, allowance: Allowance) -> bool:
        """Whether it is new. `key` is its expression, canonical. Raises a fault where it had another value before."""
        known = self.facts.setdefault(key, fact)
        if known is fact:
            return True
        if canonical(known.value, allowance) != canonical(fact.value, allowance):
            raise LispError(
                "fact-conflict", "this fact has another value already, and facts are never taken back"
            )
        return False

    def get(self, expression: Datum) -> Fact | None:
        """The fact, if it was asserted."""
        return self.facts.get(canonical(expression, Allowance()))

    def signature(self, allowance: Allowance) -> str:
        """Names the set, whatever the order."""
        return signature(
            [f"{allowance.take(key)}={canonical(fact.value, allowance)}" for key, fact in self.facts.items()]
        )


@final
class Artifact:
    """A value, the expression it is of, and the fingerprint of every file it depends on (`""` is the whole world)."""

    __slots__ = ("dependencies", "expression", "value")

    def __init__(self, expression: str, dependencies: dict[str, str], value: Datum) -> None:
        self.expression, self.dependencies, self.value = expression, dependencies, value


@final
class ArtifactStore:
    """Artifacts by their key. A stale one is never served: its fingerprints are compared before each use."""

    __slots__ = ("_by_expression", "_entries", "capacity", "evictions", "hits", "misses")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.hits = self.misses = self.evictions = 0
        self._entries: OrderedDict[str, Artifact] = OrderedDict()
        self._by_expression: dict[str, OrderedDict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Artifact | None:
        """The artifact under a key, which is the most recently used one from now on."""
        artifact = self._entries.get(key)
        if artifact is not None:
            self._entries.move_to_end(key)
        return artifact

    def has(self, key: str) -> bool:
        """Whether there is one, without using it."""
        return key in self._entries

    def of_expression(self, expression: str) -> list[tuple[str, Artifact]]:
        """All artifacts of an expression with their keys, the newest first."""
        return [
            (key, self._entries[key]) for key in reversed(self._by_expression.get(expression, OrderedDict()))
        ]

    def put(self, key: str, artifact: Artifact) -> None:
        """Keep an artifact; at capacity the least recently used one is dropped."""
        self.drop(key)
        if self.capacity == 0:
            return
        while len(self._entries) >= self.capacity:
            self.drop(next(iter(self._entries)))
            self.evictions += 1
        self._entries[key] = artifact
        self._by_expression.setdefault(artifact.expression, OrderedDict())[key] = None

    def drop(self, key: str) -> None:
        """Forget one; it may be gone already."""
        artifact = self._entries.pop(key, None)
        if artifact is not None:
            keys = self._by_expression[artifact.expression]
            del keys[key]
            if not keys:
                del self._by_expression[artifact.expression]

    def clear(self) -> None:
        """Forget everything; the counts go on."""
        self._entries.clear()
        self._by_expression.clear()

    def entries(self) -> list[tuple[str, Artifact]]:
        """Everything, the least recently used first: the order in which a copy is filled."""
        return list(self._entries.items())


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
            raise LispError("too-deep", f"memos nest at most {MAX_DEPTH} deep")

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
