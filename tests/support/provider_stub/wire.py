"""What every wire format of the stub promises: read how far a conversation is, write a reply as stream events."""

from collections.abc import Iterator
from typing import Protocol

import msgspec
from tests.support.provider_stub.faults import HttpError

from holdfast.core import Json, JsonObject, Part
from holdfast.models.contract import Reply

StreamEvent = tuple[str | None, Json]
"""The name of a server-sent event, None where the format has none, and its data."""


BROKEN = "\0broken"
"""The key under which a broken call carries its text."""


class Wire(Protocol):
    """One provider's format."""

    name: str

    def count_replies(self, body: JsonObject) -> int:
        """How many replies the conversation of a request already holds."""
        ...

    def events(self, reply: Reply, *, model: str, size: int) -> Iterator[StreamEvent]:
        """A whole reply, its words in pieces of `size` characters. Arguments of a call may be text that is no JSON."""
        ...

    def opening(self, *, model: str, text: str) -> Iterator[StreamEvent]:
        """The beginning of a reply with these first words; more `words` may follow, and no end."""
        ...

    def words(self, text: str, *, model: str) -> StreamEvent:
        """More words in a reply that was opened."""
        ...

    def error(self, fault: HttpError) -> JsonObject:
        """The body of an error answer."""
        ...


def said_by(role: str, messages: Json) -> int:
    """How many messages of a request this one has said."""
    assert isinstance(messages, list)
    return sum(isinstance(message, dict) and message.get("role") == role for message in messages)


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in bits of at most `size` characters."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def numbered(reply: Reply) -> Iterator[tuple[int, Part]]:
    """The parts of a reply with their places."""
    yield from enumerate(reply.message.parts)


def raw_arguments(arguments: JsonObject) -> str:
    """A call's arguments as text; a broken call carries its own."""
    broken = arguments.get(BROKEN)
    return broken if isinstance(broken, str) else msgspec.json.encode(arguments).decode()
