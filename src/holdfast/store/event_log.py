"""The events of one open journal in memory, and its followers."""

import asyncio
from collections.abc import Iterable, Sequence

from holdfast.core.events import RecordedEvent
from holdfast.core.projection import Projection
from holdfast.store.contract import Follower


class EventLog:
    """Contains only durable events, and passes each one in order to every follower that handles it."""

    def __init__(self, recorded: Iterable[RecordedEvent] = ()) -> None:
        self._recorded = list(recorded)
        self._followers: list[Follower] = []
        self._handlers: dict[type, tuple[Follower, ...]] = {}
        """A cache: the followers that handle each kind of event."""

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        """All events so far."""
        return self._recorded

    def follow(self, follower: Follower) -> None:
        """Call the follower with every event so far, including those recorded in the meantime, and with every future one."""
        for record in self._recorded:  # can grow during the loop
            follower(record)
        self._followers.append(follower)
        self._handlers.clear()

    def extend(self, records: Iterable[RecordedEvent]) -> None:
        """Add events that are already durable."""
        for record in records:
            self._recorded.append(record)
            for follower in self._handlers_of(type(record.event)):
                try:
                    follower(record)
                except Exception as problem:
                    _report(record, problem)

    def _handlers_of(self, kind: type) -> tuple[Follower, ...]:
        handlers = self._handlers.get(kind)
        if handlers is None:
            handlers = self._handlers[kind] = tuple(
                each for each in self._followers if not isinstance(each, Projection) or each.handles(kind)
            )
        return handlers


def _report(record: RecordedEvent, problem: Exception) -> None:
    # A follower must not raise. The event is durable, so the other followers must still get it.
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"a follower of {record.session} raised at event {record.seq}", "exception": problem}
    )
