"""The recorded form of events: a hash chain. Each event carries a hash over the event before it, so that a changed,
removed or reordered event is detected.
"""

import hashlib
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import methodcaller
from typing import Union

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.core.events.base import Event, event_types
from holdfast.core.ids import SessionId
from holdfast.core.values import Value, encode

_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Union[event_types()])  # noqa: UP007
GENESIS = b"\0" * 32
"""The hash before the first event."""


class RecordedEvent(Value, kw_only=False):
    """An event at its position. `seq` counts from 1; `hash` covers this event and, through `previous`, all before it."""

    session: SessionId
    seq: int
    at_ms: int
    event: Event
    hash: bytes
    previous: bytes = GENESIS


_UNDECODABLE = (UnicodeDecodeError, RecursionError, InvalidInput)
"""What msgspec raises besides its own errors: for an invalid string, deep nesting, and a value that refuses its fields."""

encode_event: Callable[[Event], bytes] = encode
"""Encode an event to the bytes that are stored and hashed."""


def decode_event(body: bytes) -> Event:
    """Decode one event. Raises msgspec.MsgspecError."""
    try:
        return _DECODER.decode(body)
    except _UNDECODABLE as problem:
        raise msgspec.DecodeError(f"this is not an event: {problem}") from problem


def decode_events(bodies: Iterable[bytes]) -> list[Event]:
    """Decode many events, faster than one by one. Raises msgspec.MsgspecError."""
    try:
        return list(map(_DECODER.decode, bodies))
    except _UNDECODABLE as problem:
        raise msgspec.DecodeError(f"this is not an event: {problem}") from problem


def is_of_newer_version(body: bytes) -> bool:
    """Whether these are the bytes of a kind of event that this version of Holdfast does not know."""
    try:
        return msgspec.json.decode(body, type=_Tagged).event not in _TAGS
    except (msgspec.MsgspecError, *_UNDECODABLE):
        return False


class _Tagged(msgspec.Struct):
    event: str


_TAGS = frozenset(kind.__struct_config__.tag for kind in event_types())


def event_hash(previous: bytes, session: str, seq: int, at_ms: int, body: bytes) -> bytes:
    """Hash an event together with the hash before it, its position and its time."""
    return hashlib.sha256(_HASHED % (previous, session.encode(), seq, at_ms, body)).digest()


def event_hashes(
    before: Iterable[bytes], session: str, seqs: Iterable[int], times: Iterable[int], bodies: Iterable[bytes]
) -> tuple[bytes, ...]:
    """Hash many events of one session, faster than one by one. `before` holds the hash before each."""
    hashed = map(_HASHED.__mod__, zip(before, repeat(session.encode()), seqs, times, bodies, strict=False))
    return tuple(map(_digest, map(hashlib.sha256, hashed)))


_HASHED = b"%b%b\n%d\n%d\n%b"
_digest = methodcaller("digest")
