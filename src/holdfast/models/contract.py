"""What every model promises: messages and tools in, one reply out, text as it comes. It proposes and never acts."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from holdfast.core import Finish, JsonObject, Message, ModelMessage, Usage, Value, encode

OnText = Callable[[str], None]
"""Called with each piece of text as it arrives; for showing, not for the record."""


class ToolOffer(Value):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: JsonObject


class Prompt(Value):
    """Everything a model is given for one reply."""

    system: str
    messages: Sequence[Message]
    """It does not change while the model is asked."""
    tools: tuple[ToolOffer, ...] = ()
    max_tokens: int | None = None

    @property
    def size_bytes(self) -> int:
        """About what is sent, for an estimate where nobody counts tokens."""
        return len(encode((self.system, self.tools))) + sum(len(encode(each)) for each in self.messages)


class Reply(Value):
    """What came back, and what it cost. A cost of None is an unknown price."""

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
        """The size of its window, where known."""
        ...

    async def ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        """One reply. Raises ModelUnavailable, ModelRefused, ContextExceeded; cancelling stops the request."""
        ...

    async def close(self) -> None:
        """Free its connections. Idempotent."""
        ...


@runtime_checkable
class Keyed(Protocol):
    """A model that was opened with a key, wherever that came from."""

    @property
    def key(self) -> str | None:
        """For whoever writes records to take out."""
        ...


def api_key_of(model: Model | None) -> str | None:
    """The key that a model was opened with."""
    return model.key if isinstance(model, Keyed) else None
