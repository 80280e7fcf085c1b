"""`ScriptedModel`: a fake model with prepared replies, for tests, demos and replays.

It has no state. The number of replies in the conversation selects the next one, so a session that resumes in another
process gets the right reply.
"""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec

from holdfast.core import (
    Finish,
    JsonObject,
    ModelMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
    encode,
    pluralize,
)
from holdfast.core.errors import InvalidConfig, ModelUnavailable
from holdfast.models.contract import OnPiece, PieceKind, Prompt, Reply, ReplyPiece

ScriptedReply = Reply | str | Callable[[Prompt], Reply]
"""A reply, the text of one, or a function that makes one from the prompt."""

_PIECE_LENGTH = 8
_BYTES_PER_TOKEN = 4


def say(text: str, *, finish: Finish = "stop") -> Reply:
    """A reply of plain text."""
    return Reply(message=ModelMessage(parts=(TextPart(text=text),)), usage=Usage(), finish=finish)


def use(tool: str, arguments: JsonObject, *, text: str = "") -> Reply:
    """A reply that calls one tool. The call's id comes from its position in the script."""
    return use_all((tool, arguments), text=text)


def use_all(*calls: tuple[str, JsonObject], text: str = "") -> Reply:
    """A reply that calls several tools at once."""
    texts: tuple[Part, ...] = (TextPart(text=text),) if text else ()
    tool_calls = tuple(ToolCallPart(id="", tool=tool, arguments=arguments) for tool, arguments in calls)
    return Reply(message=ModelMessage(parts=texts + tool_calls), usage=Usage(), finish="tool-calls")


class ScriptedModel:
    """Answers the nth request of a conversation with the nth reply of its script. Costs nothing."""

    def __init__(self, replies: Sequence[ScriptedReply], name: str = "scripted:replies") -> None:
        self._replies = tuple(replies)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int | None:
        return None

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        reply = self.reply_to(prompt)
        for part in reply.message.parts:
            match part:
                case TextPart(text=text):
                    kind: PieceKind = "text"
                case ThinkingPart(text=text):
                    kind = "thinking"
                case ToolCallPart():
                    continue
            for start in range(0, len(text), _PIECE_LENGTH):
                await asyncio.sleep(0)  # lets a cancelled turn stop here
                on_piece(ReplyPiece(text=text[start : start + _PIECE_LENGTH], kind=kind))
        return reply

    def reply_to(self, prompt: Prompt) -> Reply:
        """The next reply, with the ids and usage that the script leaves out filled in."""
        position = sum(isinstance(message, ModelMessage) for message in prompt.messages)
        if position >= len(self._replies):
            raise ModelUnavailable(
                f"the script of {self._name} has {pluralize(len(self._replies), 'reply', 'replies')} but reply {position + 1} was requested",
                hint="add a reply to the script",
            )
        scripted = self._replies[position]
        if isinstance(scripted, str):
            scripted = say(scripted)
        elif not isinstance(scripted, Reply):
            scripted = scripted(prompt)
        message = _with_ids(scripted.message, position)
        usage = scripted.usage if scripted.usage != Usage() else _estimate(prompt, message)
        return Reply(message=message, usage=usage, finish=scripted.finish)

    async def close(self) -> None:
        """Nothing to close."""


def read_script(path: Path) -> ScriptedModel:
    """Read a script from a JSON file: a list of texts and replies."""
    try:
        replies = msgspec.json.decode(path.read_bytes(), type=list[str | Reply])
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidConfig(
            f"{str(path)!r} is not a script: {error}",
            hint="write a JSON list of texts and replies, or choose another model with --model",
        ) from None
    return ScriptedModel(replies, name=f"scripted:{path}")


def _with_ids(message: ModelMessage, position: int) -> ModelMessage:
    parts = tuple(
        ToolCallPart(id=f"call-{position + 1}-{number}", tool=part.tool, arguments=part.arguments)
        if isinstance(part, ToolCallPart) and not part.id
        else part
        for number, part in enumerate(message.parts, start=1)
    )
    return ModelMessage(parts=parts, wire=message.wire)


def _estimate(prompt: Prompt, message: ModelMessage) -> Usage:
    return Usage(
        input_tokens=prompt.size_bytes // _BYTES_PER_TOKEN,
        output_tokens=max(1, len(encode(message)) // _BYTES_PER_TOKEN),
        cost_usd=Decimal(0),
    )
