"""A model that says what it was told to say: the twin of every real one, for tests, demonstrations and replays.

It keeps no state. Which reply is next follows from how many replies the conversation already holds, so a session that
was resumed in another process gets the right one.
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
    ToolCallPart,
    Usage,
    encode,
    pluralize,
)
from holdfast.core.errors import InvalidConfig, ModelUnavailable
from holdfast.models.contract import OnText, Prompt, Reply

ScriptedReply = Reply | str | Callable[[Prompt], Reply]
"""A whole reply, the words of one, or a function that answers what it is asked."""

_PIECE = 8
_BYTES_PER_TOKEN = 4


def say(text: str, *, finish: Finish = "stop") -> Reply:
    """A reply of plain words."""
    return Reply(message=ModelMessage(parts=(TextPart(text=text),)), usage=Usage(), finish=finish)


def use(tool: str, arguments: JsonObject, *, text: str = "") -> Reply:
    """A reply that calls one tool. Its id is filled in by its place in the script."""
    return use_all((tool, arguments), text=text)


def use_all(*calls: tuple[str, JsonObject], text: str = "") -> Reply:
    """A reply that calls several tools at once."""
    words: tuple[Part, ...] = (TextPart(text=text),) if text else ()
    wishes = tuple(ToolCallPart(id="", tool=tool, arguments=arguments) for tool, arguments in calls)
    return Reply(message=ModelMessage(parts=words + wishes), usage=Usage(), finish="tool-calls")


class ScriptedModel:
    """Answers the n-th request of a conversation with the n-th reply of its script. Costs nothing."""

    def __init__(self, replies: Sequence[ScriptedReply], name: str = "scripted:demo") -> None:
        self._replies = tuple(replies)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int | None:
        return None

    async def ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        reply = self.reply_to(prompt)
        text = reply.message.text
        for start in range(0, len(text), _PIECE):
            await asyncio.sleep(0)  # where a cancelled turn stops
            on_text(text[start : start + _PIECE])
        return reply

    def reply_to(self, prompt: Prompt) -> Reply:
        """The reply that is next, with ids and usage filled in where the script left them out."""
        place = sum(isinstance(message, ModelMessage) for message in prompt.messages)
        if place >= len(self._replies):
            raise ModelUnavailable(
                f"the script of {self._name} has {pluralize(len(self._replies), 'reply', 'replies')} and was asked for reply {place + 1}",
                hint="add a reply to the script",
            )
        scripted = self._replies[place]
        if isinstance(scripted, str):
            scripted = say(scripted)
        elif not isinstance(scripted, Reply):
            scripted = scripted(prompt)
        message = _with_ids(scripted.message, place)
        usage = scripted.usage if scripted.usage != Usage() else _estimate(prompt, message)
        return Reply(message=message, usage=usage, finish=scripted.finish)

    async def close(self) -> None:
        """Nothing is held."""


def read_script(path: Path) -> ScriptedModel:
    """The model whose replies stand in a JSON file: a list of texts and replies."""
    try:
        replies = msgspec.json.decode(path.read_bytes(), type=list[str | Reply])
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidConfig(
            f"{str(path)!r} holds no script: {error}", hint="it has to be a JSON list of texts and replies"
        ) from None
    return ScriptedModel(replies, name=f"scripted:{path}")


def _with_ids(message: ModelMessage, place: int) -> ModelMessage:
    parts = tuple(
        ToolCallPart(id=f"call-{place + 1}-{number}", tool=part.tool, arguments=part.arguments)
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
