"""The contract of a wire format: count the replies in a request, and write a reply as stream events."""

from collections.abc import Iterator
from typing import Protocol

import msgspec
from tests.support.provider_stub.faults import HttpError

from holdfast.core import Json, JsonObject, Part
from holdfast.models.contract import Reply

StreamEvent = tuple[str | None, Json]
"""The name of a server-sent event, or None if the format has no names, and its data."""

BROKEN = "\0broken"
"""The argument name under which a broken call has its raw text."""


class Wire(Protocol):
    """One provider's format."""

    name: str

    def count_replies(self, body: JsonObject) -> int:
        """How many replies the conversation in a request already contains."""
        ...

    def events(self, reply: Reply, *, model: str, size: int) -> Iterator[StreamEvent]:
        """A complete reply, its text in pieces of `size` characters. The arguments of a call may be invalid JSON."""
        ...

    def opening(self, *, model: str, text: str) -> Iterator[StreamEvent]:
        """The start of a reply with this text. More `text_event`s may follow; the end never comes."""
        ...

    def text_event(self, text: str, *, model: str) -> StreamEvent:
        """More text in a reply that `opening` started."""
        ...

    def error(self, fault: HttpError) -> JsonObject:
        """The body of an error response."""
        ...


def count_messages(role: str, messages: Json) -> int:
    """How many messages of a request have this role."""
    assert isinstance(messages, list)
    return sum(isinstance(message, dict) and message.get("role") == role for message in messages)


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at most `size` characters."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def numbered(reply: Reply) -> Iterator[tuple[int, Part]]:
    """The parts of a reply with their positions."""
    yield from enumerate(reply.message.parts)


def raw_arguments(arguments: JsonObject) -> str:
    """A call's arguments as text; a broken call has its own text."""
    broken = arguments.get(BROKEN)
    return broken if isinstance(broken, str) else msgspec.json.encode(arguments).decode()
