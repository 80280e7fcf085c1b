"""Who waits for whom. A question that could only be answered after itself is refused when it is asked.

Nodes are sessions. A session waits for another while a letter of its own making is unanswered there. Two things can
never end: a circle of such waits, and every member of a full pool waiting for one that has no place. Both come about
only when a wait is added, so that is where both are looked for.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator

from holdfast.core import SessionId, pluralize
from holdfast.teams.errors import PoolFull, WouldDeadlock


class WaitGraph:
    """The waits of this moment."""

    def __init__(self) -> None:
        self._edges: dict[SessionId, Counter[SessionId]] = {}

    @property
    def waiting(self) -> set[SessionId]:
        """Sessions whose turn waits for another's."""
        return set(self._edges)

    @contextlib.contextmanager
    def added(
        self, waiter: SessionId | None, awaited: SessionId, *, is_starved: Callable[[set[SessionId]], bool]
    ) -> Iterator[None]:
        """A wait, for as long as the block runs. `is_starved` says whether nobody could go on with these waiting."""
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
                "every member is waiting for another one, and there is no place for one more",
                hint="answer with what you know, or raise max_processes in the roster",
            )
        self._edges.setdefault(waiter, Counter())[awaited] += 1
        try:
            yield
        finally:
            left = self._edges[waiter]
            left[awaited] -= 1
            if not +left:
                del self._edges[waiter]

    def _path(self, start: SessionId, goal: SessionId) -> list[SessionId]:
        """How `start` waits for `goal`; empty where it does not."""
        seen, ways = {start}, [[start]]
        while ways:
            way = ways.pop()
            if way[-1] == goal:
                return way
            for following in +self._edges.get(way[-1], Counter()):
                if following not in seen:
                    seen.add(following)
                    ways.append([*way, following])
        return []
