"""What every model promises. Each kind passes this suite, the scripted twin as well as providers over real HTTP."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.models.speaking import Speak

from holdfast.core import (
    Message,
    ModelMessage,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolMessage,
    ToolReturn,
    Usage,
    UserMessage,
)
from holdfast.models import Prompt, Reply, ToolOffer, say, use_all

HELLO = Prompt(system="Be brief.", messages=(UserMessage(text="hello"),))
TOOL = ToolOffer(
    name="look",
    description="Look at a thing.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)
WORDS = "Grüße aus 北京: a reply of many words 🪸 and a\nsecond line."


async def test_the_pieces_shown_are_the_words_of_the_reply(speak: Speak) -> None:
    model = await speak([WORDS])
    pieces: list[str] = []
    reply = await model.ask(HELLO, pieces.append)
    assert reply.message.text == WORDS
    assert "".join(pieces) == WORDS
    assert len(pieces) > 3
    assert reply.finish == "stop"


async def test_parallel_calls_come_back_in_order_with_ids_of_their_own(speak: Speak) -> None:
    model = await speak(
        [use_all(("look", {"at": "ä" * 40}), ("look", {"at": "b", "deep": {"n": [1, 2.5, None]}}))]
    )
    reply = await model.ask(Prompt(system="", messages=HELLO.messages, tools=(TOOL,)), lambda _: None)
    first, second = reply.message.tool_calls
    assert (first.tool, first.arguments) == ("look", {"at": "ä" * 40})
    assert second.arguments == {"at": "b", "deep": {"n": [1, 2.5, None]}}
    assert first.id != second.id
    assert reply.finish == "tool-calls"


async def test_a_conversation_goes_on_after_calls_and_their_returns(speak: Speak) -> None:
    model = await speak(
        [use_all(("look", {"at": "a"}), text="I will look."), "It is an A.", "You are welcome."]
    )
    messages: Sequence[Message] = HELLO.messages
    first = await model.ask(Prompt(system="s", messages=messages, tools=(TOOL,)), lambda _: None)
    returns = tuple(
        ToolReturn(id=call.id, tool=call.tool, content="an A") for call in first.message.tool_calls
    )
    messages = (*messages, first.message, ToolMessage(returns=returns))
    second = await model.ask(Prompt(system="s", messages=messages, tools=(TOOL,)), lambda _: None)
    assert second.message.text == "It is an A."
    messages = (*messages, second.message, UserMessage(text="thanks"))
    third = await model.ask(Prompt(system="s", messages=messages, tools=(TOOL,)), lambda _: None)
    assert third.message.text == "You are welcome."


async def test_a_reply_of_another_model_can_stand_in_the_conversation(speak: Speak) -> None:
    foreign = ModelMessage(
        parts=(
            ThinkingPart(text="hm"),
            TextPart(text="let me look"),
            ToolCallPart(id="x-1", tool="look", arguments={"at": "a"}),
        ),
        wire='{"format":1,"provider":"elsewhere","response":{}}',
    )
    returned = ToolMessage(returns=(ToolReturn(id="x-1", tool="look", content="gone", is_error=True),))
    model = await speak(["never said", "I see."])
    reply = await model.ask(
        Prompt(system="s", messages=(*HELLO.messages, foreign, returned), tools=(TOOL,)), lambda _: None
    )
    assert reply.message.text == "I see."


async def test_thoughts_are_kept_apart_from_words(speak: Speak) -> None:
    thoughtful = Reply(
        message=ModelMessage(parts=(ThinkingPart(text="first this, then that"), TextPart(text="Done."))),
        usage=Usage(input_tokens=5, output_tokens=5),
    )
    model = await speak([thoughtful])
    pieces: list[str] = []
    reply = await model.ask(HELLO, pieces.append)
    assert reply.message.text == "Done." == "".join(pieces)
    assert [part.text for part in reply.message.parts if isinstance(part, ThinkingPart)] == [
        "first this, then that"
    ]


async def test_usage_is_what_the_provider_counted(speak: Speak) -> None:
    counted = Usage(input_tokens=1200, output_tokens=34, cached_tokens=1000)
    model = await speak([Reply(message=say("ok").message, usage=counted)])
    usage = (await model.ask(HELLO, lambda _: None)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (1200, 34, 1000)


@pytest.mark.parametrize("finish", ["length", "refused"])
async def test_a_reply_says_why_it_ended(speak: Speak, finish: str) -> None:
    given = say("as far as it goes", finish="length" if finish == "length" else "refused")
    model = await speak([given])
    assert (await model.ask(HELLO, lambda _: None)).finish == finish


async def test_two_conversations_at_once_do_not_mix(speak: Speak) -> None:
    model = await speak(["one", "two"])
    later = Prompt(system="", messages=(*HELLO.messages, say("one").message, UserMessage(text="and?")))
    replies = await asyncio.gather(model.ask(HELLO, lambda _: None), model.ask(later, lambda _: None))
    assert [reply.message.text for reply in replies] == ["one", "two"]


async def test_closing_twice_is_closing_once(speak: Speak) -> None:
    model = await speak(["one"])
    await model.close()
    await model.close()


async def test_a_model_has_the_name_it_was_opened_by(speak: Speak, kind: str) -> None:
    model = await speak(["one"])
    assert model.name.split(":")[0] == kind
