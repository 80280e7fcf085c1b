"""What is said between a person, a model and its tools. Providers' own forms are mapped to this in `models`.

What a model counted for one reply.
"""

from decimal import Decimal
from typing import Literal

from holdfast.core.values import JsonObject, Value


class Usage(Value):
    """Tokens in and out, and their price; None where the price is not known. Cached input is part of input_tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None


class TextPart(Value, tag_field="kind", tag="text"):
    """Words of the model."""

    text: str


class ThinkingPart(Value, tag_field="kind", tag="thinking"):
    """What a model thought aloud; shown on request, never parsed."""

    text: str


class ToolCallPart(Value, tag_field="kind", tag="tool-call"):
    """A tool the model wants to be called; `id` joins it to its return."""

    id: str
    tool: str
    arguments: JsonObject


Part = TextPart | ThinkingPart | ToolCallPart


class UserMessage(Value, tag_field="role", tag="user"):
    """What a person, or another agent in a person's place, said."""

    text: str


class ModelMessage(Value, tag_field="role", tag="model"):
    """One reply. `wire` keeps the provider's own form, so that signatures and the like go back as they came."""

    parts: tuple[Part, ...]
    wire: str | None = None

    @property
    def text(self) -> str:
        """The words of the reply, without thinking and calls."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The calls of the reply, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))


class ToolReturn(Value):
    """What the model is told of one of its calls."""

    id: str
    tool: str
    content: str
    is_error: bool = False


class ToolMessage(Value, tag_field="role", tag="tool"):
    """The returns of one reply's calls; a reply's calls are all answered in one message."""

    returns: tuple[ToolReturn, ...]


Message = UserMessage | ModelMessage | ToolMessage

Finish = Literal["stop", "tool-calls", "length", "refused"]
"""Why a model stopped: it was done, wants tools, hit its output limit, or declined."""
