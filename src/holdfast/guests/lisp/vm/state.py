"""The state of a session's programs: facts, memoized artifacts, and the context of running code.

Facts only grow. An artifact is a memoized value with the fingerprints of the files it was computed from; the least recently
used one is evicted first. The context (top level, facts, budget, dependency tracker) is restored when control returns.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import final

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lang.equality import Allowance, canonical, signature
from holdfast.guests.lisp.vm.environment import Root
from holdfast.guests.lisp.vm.limits import ScopedBudget


@final
class Fact:
    """An assertion with its evidence and time. A keyed fact also has a value, which never changes."""

    __slots__ = ("asserted_ms", "evidence", "expression", "value")

    def __init__(self, expression: Datum, evidence: Datum, value: Datum, asserted_ms: int) -> None:
        self.expression, self.evidence, self.value = expression, evidence, value
        self.asserted_ms = asserted_ms


@final
class FactStore:
    """Facts in the order of their assertion. None is ever retracted."""

    __slots__ = ("facts",)

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}

    def add(self, key: str, fact: Fact, allowance: Allowance) -> bool:
        """Add a fact; True if it is new. `key` is its canonical expression. Raises a LispError if its value differs."""
        known = self.facts.setdefault(key, fact)
        if known is fact:
            return True
        if canonical(known.value, allowance) != canonical(fact.value, allowance):
            raise LispError("fact-conflict", "this fact already has another value, and facts never change")
        return False

    def get(self, expression: Datum) -> Fact | None:
        """The fact, or None if it was not asserted."""
        return self.facts.get(canonical(expression, Allowance()))

    def signature(self, allowance: Allowance) -> str:
        """A digest of the set that does not depend on the order."""
        return signature(
            [f"{allowance.take(key)}={canonical(fact.value, allowance)}" for key, fact in self.facts.items()]
        )


@final
class Artifact:
    """A value, its expression, and the fingerprint of every file that it depends on (`""` is all files)."""

    __slots__ = ("dependencies", "expression", "value")

    def __init__(self, expression: str, dependencies: dict[str, str], value: Datum) -> None:
        self.expression, self.dependencies, self.value = expression, dependencies, value


@final
class ArtifactStore:
    """Artifacts by key. A stale one is never returned: its fingerprints are compared before each use."""

    __slots__ = ("_by_expression", "_entries", "capacity", "evictions", "hits", "misses")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.hits = self.misses = self.evictions = 0
        self._entries: OrderedDict[str, Artifact] = OrderedDict()
        self._by_expression: dict[str, OrderedDict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Artifact | None:
        """The artifact under a key; marks it as most recently used."""
        artifact = self._entries.get(key)
        if artifact is not None:
            self._entries.move_to_end(key)
        return artifact

    def has(self, key: str) -> bool:
        """Whether there is one; does not mark it as used."""
        return key in self._entries

    def of_expression(self, expression: str) -> list[tuple[str, Artifact]]:
        """All artifacts of an expression with their keys, newest first."""
        return [
            (key, self._entries[key]) for key in reversed(self._by_expression.get(expression, OrderedDict()))
        ]

    def put(self, key: str, artifact: Artifact) -> None:
        """Store an artifact; at capacity the least recently used one is evicted."""
        self.drop(key)
        if self.capacity == 0:
            return
        while len(self._entries) >= self.capacity:
            self.drop(next(iter(self._entries)))
            self.evictions += 1
        self._entries[key] = artifact
        self._by_expression.setdefault(artifact.expression, OrderedDict())[key] = None

    def drop(self, key: str) -> None:
        """Remove an artifact, if it exists."""
        artifact = self._entries.pop(key, None)
        if artifact is not None:
            keys = self._by_expression[artifact.expression]
            del keys[key]
            if not keys:
                del self._by_expression[artifact.expression]

    def clear(self) -> None:
        """Remove everything; the counters keep their values."""
        self._entries.clear()
        self._by_expression.clear()

    def entries(self) -> list[tuple[str, Artifact]]:
        """All artifacts, least recently used first, so that a copy can be filled in this order."""
        return list(self._entries.items())


MAX_DEPTH = 100
"""Nesting of memos: each file access is recorded in all of them."""


@final
class Tracker:
    """Records the files that a memo's body reads, with their fingerprints; an outer memo also depends on them."""

    __slots__ = ("dependencies", "depth", "outer")

    def __init__(self, outer: "Tracker | None") -> None:
        self.dependencies: dict[str, str] = {}
        self.outer = outer
        self.depth: int = 1 if outer is None else outer.depth + 1
        if self.depth > MAX_DEPTH:
            raise LispError("too-deep", f"memos nest at most {MAX_DEPTH} deep")

    def knows(self, path: str) -> bool:
        """Whether a file is recorded in this tracker and all outer ones."""
        tracker: Tracker | None = self
        while tracker is not None:
            if path not in tracker.dependencies:
                return False
            tracker = tracker.outer
        return True

    def note(self, path: str, fingerprint: str) -> None:
        """Record a file. The first fingerprint counts, because the value may come from it."""
        tracker: Tracker | None = self
        while tracker is not None:
            tracker.dependencies.setdefault(path, fingerprint)
            tracker = tracker.outer


@final
@dataclass(frozen=True, slots=True)
class Context:
    """The context of running code; replaced, never changed."""

    root: Root
    facts: FactStore
    budget: ScopedBudget | None = None
    tracker: Tracker | None = None


@final
class LispState:
    """What persists between the runs of a session."""

    __slots__ = ("artifacts", "facts", "root")

    def __init__(self, root: Root, facts: FactStore, artifacts: ArtifactStore) -> None:
        self.root, self.facts, self.artifacts = root, facts, artifacts
