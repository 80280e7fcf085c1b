"""Checking the rows of a journal that may be damaged. Pure: the stores read the rows."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.events import GENESIS, RecordedEvent, decode_event, event_hash
from holdfast.store.contract import Inspection, JournalProblem

Row = tuple[int, int, bytes, bytes, bool]
"""Position, time, hash and bytes of an event, and whether their types were right."""


class InspectedSegment(Value):
    """The rows of one writer's part of a history; `upto` is its last position if another part follows."""

    session: SessionId
    upto: int | None
    rows: Iterable[Row]


def inspect_rows(
    session: SessionId,
    segments: Iterable[InspectedSegment],
    *,
    claimed: int,
    added: Sequence[int] = (),
) -> tuple[Inspection, list[RecordedEvent]]:
    """Check every event of a session. Returns the problems and the readable events.

    `claimed` is the number of events that the session list knows, `added` the rows at impossible positions.
    """
    problems: list[JournalProblem] = []
    readable: list[RecordedEvent] = []
    previous, place, expected = GENESIS, 0, 1
    for segment in segments:
        for seq, at_ms, link, body, is_typed in segment.rows:
            problems += _gap(expected, seq)
            # After a gap the previous hash is unknown, so only the events after the next one can be checked.
            is_linked = seq > place + 1 or event_hash(previous, segment.session, seq, at_ms, body) == link
            if not (is_typed and is_linked):
                problems.append(JournalProblem(seq=seq, what="changed"))
            try:
                event = decode_event(body)
            except msgspec.MsgspecError:
                problems.append(JournalProblem(seq=seq, what="unreadable"))
            else:
                readable.append(
                    RecordedEvent(
                        session=segment.session,
                        seq=seq,
                        at_ms=at_ms,
                        event=event,
                        hash=link,
                        previous=previous,
                    )
                )
            previous, place, expected = link, seq, seq + 1
        if segment.upto is not None:
            problems += _gap(expected, segment.upto + 1)
            expected = max(expected, segment.upto + 1)
    # A session has at least its first event, whatever the session list says.
    problems += _gap(expected, max(claimed, 1) + 1)
    problems += [JournalProblem(seq=seq, what="added") for seq in added]
    found = Inspection(
        session=session, events=len(readable), problems=tuple(problems), last_hash=previous.hex()
    )
    return found, readable


def _gap(expected: int, found: int) -> list[JournalProblem]:
    return [JournalProblem(seq=expected, what="missing", count=found - expected)] if found > expected else []
