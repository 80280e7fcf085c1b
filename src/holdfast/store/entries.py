"""From an event to the entry that every store records: its redacted bytes, its position and its hash."""

from collections.abc import Sequence

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.errors import InvalidInput
from holdfast.core.events import Event, RecordedEvent, decode_event, encode_event, event_hash
from holdfast.store.contract import Redact
from holdfast.store.names import with_alias


class Entry(Value):
    """An event as it will be recorded, with its bytes, before it has a position."""

    event: Event
    body: bytes


def encode_entry(event: Event, redact: Redact) -> Entry:
    """Encode an event. Later changes to the caller's object do not alter the entry. Raises InvalidInput."""
    try:
        body = redact(encode_event(with_alias(event)))
        return Entry(event=decode_event(body), body=body)
    except RecursionError:
        raise InvalidInput(f"a {type(event).__name__} is nested too deeply to be recorded") from None
    except msgspec.MsgspecError as problem:
        # Fail closed: the event must not be written with the secret, and without it, it is not a valid event.
        raise InvalidInput(
            f"a {type(event).__name__} cannot be recorded: a known secret is one of the words of its format",
            hint="replace the secret with one that is hard to guess",
        ) from problem


def chain_entries(
    session: SessionId, entries: Sequence[Entry], *, at_ms: int, seq: int, previous: bytes
) -> list[RecordedEvent]:
    """Give entries their positions and hashes after the event `seq`, whose hash is `previous`."""
    records: list[RecordedEvent] = []
    for place, entry in enumerate(entries, start=seq + 1):
        link = event_hash(previous, session, place, at_ms, entry.body)
        records.append(
            RecordedEvent(
                session=session, seq=place, at_ms=at_ms, event=entry.event, hash=link, previous=previous
            )
        )
        previous = link
    return records
