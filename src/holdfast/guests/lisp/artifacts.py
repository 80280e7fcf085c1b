"""What `memo` keeps: values with the state of the world they were computed from. The least recently used one goes first."""

from collections import OrderedDict
from typing import final

from holdfast.guests.lisp.data import Datum


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
