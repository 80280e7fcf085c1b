"""A tape: the events of one journal as its event loop sees them, with those who follow it."""

import asyncio
from collections.abc import Iterable, Sequence

from holdfast.core.events import Recorded
from holdfast.store.contract import Follower


class Tape:
    """Grows by durable events only, and hands each to every follower in order."""

    def __init__(self, recorded: Iterable[Recorded] = ()) -> None:
        self._recorded = list(recorded)
        self._followers: list[Follower] = []

    @property
    def recorded(self) -> Sequence[Recorded]:
        """Everything so far."""
        return self._recorded

    def follow(self, follower: Follower) -> None:
        """Hand over everything so far, then everything to come; also what is recorded while it catches up."""
        for record in self._recorded:  # it may grow meanwhile
            follower(record)
        self._followers.append(follower)

    def extend(self, records: Iterable[Recorded]) -> None:
        """New events, durable already."""
        for record in records:
            self._recorded.append(record)
            for follower in tuple(self._followers):
                try:
                    follower(record)
                except Exception as problem:
                    _report(record, problem)


def _report(record: Recorded, problem: Exception) -> None:
    # A follower that raises breaks its promise; the event is durable all the same and the others must hear of it.
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"a follower of {record.session} raised at event {record.seq}", "exception": problem}
    )
