"""Messages between a person, a model and its tools. `models` translates the providers' formats to these types."""

from decimal import Decimal
from typing import Literal

from holdfast.core.values import JsonObject, Value


class Usage(Value):
    """The tokens of one reply and their price; None if the price is unknown. Cached input counts as input_tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None


class TextPart(Value, tag_field="kind", tag="text"):
    """Text of the model."""

    text: str


class ThinkingPart(Value, tag_field="kind", tag="thinking"):
    """The model's reasoning; shown on request, never parsed."""

    text: str


class ToolCallPart(Value, tag_field="kind", tag="tool-call"):
    """A tool call that the model requests; `id` links it to its return."""

    id: str
    tool: str
    arguments: JsonObject


Part = TextPart | ThinkingPart | ToolCallPart


class Attachment(Value):
    """A picture or document that a person attached to a message. The blob of the digest holds its content."""

    name: str = ""
    media_type: str = ""
    digest: str = ""
    size: int = 0
    tokens: int = 0
    """An estimate of what it costs a model to read it."""


class UserMessage(Value, tag_field="role", tag="user"):
    """A message of a person, or of another agent in the role of a person."""

    text: str
    attachments: tuple[Attachment, ...] = ()


class ModelMessage(Value, tag_field="role", tag="model"):
    """One reply. `wire` keeps the provider's original form, so that signatures are sent back unchanged."""

    parts: tuple[Part, ...]
    wire: str | None = None

    @property
    def text(self) -> str:
        """The text of the reply, without reasoning and calls."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The calls of the reply, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))


class ToolReturn(Value):
    """The result of one call, for the model."""

    id: str
    tool: str
    content: str
    is_error: bool = False


class ToolMessage(Value, tag_field="role", tag="tool"):
    """The results of all calls of one reply."""

    returns: tuple[ToolReturn, ...]


Message = UserMessage | ModelMessage | ToolMessage

Finish = Literal["stop", "tool-calls", "length", "refused"]
"""Why a model stopped: it finished, requested tools, reached its output limit, or declined."""
