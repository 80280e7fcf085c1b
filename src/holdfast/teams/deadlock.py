"""The wait graph: refuses a question that could never be answered, at the moment it is asked.

Nodes are sessions. A session waits for another while its own message there is unanswered. Two situations never end: a
cycle of waits, and a full pool whose members all wait for one that has no slot. Both arise only when a wait is added,
so that is where both are checked.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator

from holdfast.core import SessionId, pluralize
from holdfast.teams.errors import PoolFull, WouldDeadlock


class WaitGraph:
    """Which sessions wait for which."""

    def __init__(self) -> None:
        self._edges: dict[SessionId, Counter[SessionId]] = {}

    @property
    def waiting(self) -> set[SessionId]:
        """Sessions whose turn waits for another session."""
        return set(self._edges)

    @contextlib.contextmanager
    def waiting_for(
        self, waiter: SessionId | None, awaited: SessionId, *, is_starved: Callable[[set[SessionId]], bool]
    ) -> Iterator[None]:
        """A wait that lasts while the block runs. `is_starved` tells whether these waits would leave no member to proceed.

        Raises WouldDeadlock and PoolFull.
        """
        if waiter is None:
            yield
            return
        path = self._path(awaited, waiter)
        if path:
            raise WouldDeadlock(
                f"this question would wait for its own answer, over {pluralize(len(path), 'conversation')}",
                hint="answer with what you know, or ask in another thread",
            )
        if is_starved(self.waiting | {waiter}):
            raise PoolFull(
                "every member is waiting for another one, and the pool has no free slot",
                hint="answer with what you know, or raise max_processes in the roster",
            )
        self._edges.setdefault(waiter, Counter())[awaited] += 1
        try:
            yield
        finally:
            remaining = self._edges[waiter]
            remaining[awaited] -= 1
            if not +remaining:
                del self._edges[waiter]

    def _path(self, start: SessionId, goal: SessionId) -> list[SessionId]:
        """The chain of waits from `start` to `goal`; empty if there is none."""
        seen, paths = {start}, [[start]]
        while paths:
            path = paths.pop()
            if path[-1] == goal:
                return path
            for following in +self._edges.get(path[-1], Counter()):
                if following not in seen:
                    seen.add(following)
                    paths.append([*path, following])
        return []
