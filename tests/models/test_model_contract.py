"""The contract of a model. Every kind passes this suite: the scripted fake, and each provider over real HTTP."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.models.create import SPECS, CreateScripted

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
from holdfast.models import Prompt, Reply, ReplyPiece, ToolOffer, say, use_all
from holdfast.models.providers import PROVIDERS

HELLO = Prompt(system="Be brief.", messages=(UserMessage(text="hello"),))
TOOL = ToolOffer(
    name="look",
    description="Look at a thing.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)
TEXT = "Grüße aus 北京: a reply in several pieces 🪸 and a\nsecond line."


def said(kind: str, pieces: list[ReplyPiece]) -> str:
    return "".join(piece.text for piece in pieces if piece.kind == kind)


async def test_the_streamed_pieces_are_the_text_of_the_reply(create_scripted: CreateScripted) -> None:
    model = await create_scripted([TEXT])
    pieces: list[ReplyPiece] = []
    reply = await model.ask(HELLO, pieces.append)
    assert reply.message.text == TEXT
    assert "".join(piece.text for piece in pieces) == TEXT
    assert len(pieces) > 3
    assert reply.finish == "stop"


async def test_parallel_calls_arrive_in_order_with_different_ids(create_scripted: CreateScripted) -> None:
    model = await create_scripted(
        [use_all(("look", {"at": "ä" * 40}), ("look", {"at": "b", "deep": {"n": [1, 2.5, None]}}))]
    )
    reply = await model.ask(Prompt(system="", messages=HELLO.messages, tools=(TOOL,)), lambda _: None)
    first, second = reply.message.tool_calls
    assert (first.tool, first.arguments) == ("look", {"at": "ä" * 40})
    assert second.arguments == {"at": "b", "deep": {"n": [1, 2.5, None]}}
    assert first.id != second.id
    assert reply.finish == "tool-calls"


async def test_a_conversation_continues_after_calls_and_their_results(
    create_scripted: CreateScripted,
) -> None:
    model = await create_scripted(
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


async def test_a_conversation_may_contain_a_reply_of_another_model(create_scripted: CreateScripted) -> None:
    other = ModelMessage(
        parts=(
            ThinkingPart(text="hm"),
            TextPart(text="let me look"),
            ToolCallPart(id="x-1", tool="look", arguments={"at": "a"}),
        ),
        wire='{"format":1,"provider":"elsewhere","response":{}}',
    )
    returned = ToolMessage(returns=(ToolReturn(id="x-1", tool="look", content="gone", is_error=True),))
    model = await create_scripted(["never said", "I see."])
    reply = await model.ask(
        Prompt(system="s", messages=(*HELLO.messages, other, returned), tools=(TOOL,)), lambda _: None
    )
    assert reply.message.text == "I see."


async def test_reasoning_is_not_part_of_the_text(create_scripted: CreateScripted) -> None:
    thoughtful = Reply(
        message=ModelMessage(parts=(ThinkingPart(text="first this, then that"), TextPart(text="Done."))),
        usage=Usage(input_tokens=5, output_tokens=5),
    )
    model = await create_scripted([thoughtful])
    pieces: list[ReplyPiece] = []
    reply = await model.ask(HELLO, pieces.append)
    assert reply.message.text == "Done." == said("text", pieces)
    assert said("thinking", pieces) == "first this, then that"
    assert [part.text for part in reply.message.parts if isinstance(part, ThinkingPart)] == [
        "first this, then that"
    ]


async def test_usage_is_what_the_provider_reports(create_scripted: CreateScripted) -> None:
    counted = Usage(input_tokens=1200, output_tokens=34, cached_tokens=1000)
    model = await create_scripted([Reply(message=say("ok").message, usage=counted)])
    usage = (await model.ask(HELLO, lambda _: None)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (1200, 34, 1000)


@pytest.mark.parametrize("finish", ["length", "refused"])
async def test_a_reply_has_the_reason_why_it_ended(create_scripted: CreateScripted, finish: str) -> None:
    given = say("as far as it goes", finish="length" if finish == "length" else "refused")
    model = await create_scripted([given])
    assert (await model.ask(HELLO, lambda _: None)).finish == finish


async def test_concurrent_conversations_do_not_mix(create_scripted: CreateScripted) -> None:
    model = await create_scripted(["one", "two"])
    later = Prompt(system="", messages=(*HELLO.messages, say("one").message, UserMessage(text="and?")))
    replies = await asyncio.gather(model.ask(HELLO, lambda _: None), model.ask(later, lambda _: None))
    assert [reply.message.text for reply in replies] == ["one", "two"]


async def test_close_is_idempotent(create_scripted: CreateScripted) -> None:
    model = await create_scripted(["one"])
    await model.close()
    await model.close()


async def test_the_name_of_a_model_starts_with_its_provider(
    create_scripted: CreateScripted, kind: str
) -> None:
    model = await create_scripted(["one"])
    assert model.name.split(":")[0] == kind


def test_every_provider_passes_this_suite() -> None:
    assert set(SPECS) == set(PROVIDERS)
