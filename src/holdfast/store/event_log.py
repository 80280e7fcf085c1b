"""A tape: the events of one journal as its event loop sees them, with those who follow it."""

import asyncio
from collections.abc import Iterable, Sequence

from holdfast.core.events import RecordedEvent
from holdfast.core.projection import Projection
from holdfast.store.contract import Follower


class EventLog:
    """Grows by durable events only, and hands each in order to every follower that heeds it."""

    def __init__(self, recorded: Iterable[RecordedEvent] = ()) -> None:
        self._recorded = list(recorded)
        self._followers: list[Follower] = []
        self._heeding: dict[type, tuple[Follower, ...]] = {}
        """Who of them heeds which kind of event, as far as somebody had to know."""

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        """Everything so far."""
        return self._recorded

    def follow(self, follower: Follower) -> None:
        """Hand over everything so far, then everything to come; also what is recorded while it catches up."""
        for record in self._recorded:  # it may grow meanwhile
            follower(record)
        self._followers.append(follower)
        self._heeding.clear()

    def extend(self, records: Iterable[RecordedEvent]) -> None:
        """New events, durable already."""
        for record in records:
            self._recorded.append(record)
            for follower in self._who_heeds(type(record.event)):
                try:
                    follower(record)
                except Exception as problem:
                    _report(record, problem)

    def _who_heeds(self, kind: type) -> tuple[Follower, ...]:
        heeding = self._heeding.get(kind)
        if heeding is None:
            heeding = self._heeding[kind] = tuple(
                each for each in self._followers if not isinstance(each, Projection) or each.handles(kind)
            )
        return heeding


def _report(record: RecordedEvent, problem: Exception) -> None:
    # A follower that raises breaks its promise; the event is durable all the same and the others must hear of it.
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"a follower of {record.session} raised at event {record.seq}", "exception": problem}
    )
