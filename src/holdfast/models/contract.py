"""The contract of a language model: messages and tools in, one reply out, its text streamed. A model proposes; it never acts."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from holdfast.core import Finish, JsonObject, Message, ModelMessage, Usage, Value, encode

PieceKind = Literal["text", "thinking", "retry"]


class ReplyPiece(Value):
    """A piece of a reply as it arrives: text of the answer, text of the reasoning, or the notice of another attempt."""

    text: str
    kind: PieceKind = "text"


OnPiece = Callable[[ReplyPiece], None]
"""Called with each piece as it arrives. For display only; the reply is what gets recorded."""


class ToolOffer(Value):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: JsonObject


class Prompt(Value):
    """Everything a model receives for one reply."""

    system: str
    messages: Sequence[Message]
    """Must not change while a request is in flight."""
    tools: tuple[ToolOffer, ...] = ()
    max_tokens: int | None = None
    contents: dict[str, bytes] = msgspec.field(default_factory=dict)
    """By digest: what is attached to the messages."""

    @property
    def size_bytes(self) -> int:
        """The approximate size of the request, to estimate tokens that the provider did not count."""
        return len(encode((self.system, self.tools))) + sum(len(encode(each)) for each in self.messages)


class Reply(Value):
    """One reply and its cost. A cost of None means that the price is unknown."""

    message: ModelMessage
    usage: Usage
    finish: Finish = "stop"


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """`provider:name`, as in the configuration and in the journal."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """The size of its context window, if known."""
        ...

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        """Request one reply. Raises ModelUnavailable, ModelRefused or ContextExceeded; cancelling closes the connection."""
        ...

    async def close(self) -> None:
        """Close its connections. Idempotent."""
        ...


@runtime_checkable
class Keyed(Protocol):
    """A model that was created with an API key."""

    @property
    def key(self) -> str | None:
        """The API key, so that records can be redacted."""
        ...


@runtime_checkable
class Preloadable(Protocol):
    """A model that can load its library before the first request."""

    async def preload(self) -> None:
        """Load the library now. Idempotent."""
        ...


async def preload(model: Model) -> None:
    """Load what the first request to a model needs, if there is anything to load."""
    if isinstance(model, Preloadable):
        await model.preload()


def api_key_of(model: Model | None) -> str | None:
    """The API key that a model was created with, or None."""
    return model.key if isinstance(model, Keyed) else None
