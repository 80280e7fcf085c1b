"""Records: how an event becomes what is kept of it, the same in every store."""

from collections.abc import Callable, Sequence

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.errors import InvalidInput
from holdfast.core.events import AnyEvent, Recorded, chain, decode_event, encode_event
from holdfast.store.naming import named

Redact = Callable[[bytes], bytes]
"""Takes the known secrets out of the bytes of an event."""


class Entry(Value):
    """An event as it will be recorded, with its bytes, not yet in its place."""

    event: AnyEvent
    body: bytes


def encode_entry(event: AnyEvent, redact: Redact) -> Entry:
    """Fix an event: what the caller still holds and may change is not what is recorded."""
    try:
        body = redact(encode_event(named(event)))
        return Entry(event=decode_event(body), body=body)
    except RecursionError:
        raise InvalidInput(f"a {type(event).__name__} is nested too deeply to be recorded") from None
    except msgspec.MsgspecError as problem:
        # Fail closed: with the secret it may not be written, and without it, it is no event.
        raise InvalidInput(
            f"a known secret is a word that a {type(event).__name__} is made of, so that it cannot be recorded",
            hint="change the secret for one that nobody could guess",
        ) from problem


def chained(
    session: SessionId, entries: Sequence[Entry], *, at_ms: int, seq: int, previous: bytes
) -> list[Recorded]:
    """Entries in their places behind the event `seq` with the hash `previous`."""
    records: list[Recorded] = []
    for place, entry in enumerate(entries, start=seq + 1):
        link = chain(previous, session, place, at_ms, entry.body)
        records.append(
            Recorded(session=session, seq=place, at_ms=at_ms, event=entry.event, hash=link, previous=previous)
        )
        previous = link
    return records
