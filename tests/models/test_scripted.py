"""The scripted model: what it says follows from the conversation alone."""

import pytest

from holdfast.core import ModelMessage, TextPart, ToolCallPart, UserMessage
from holdfast.core.errors import ModelUnavailable
from holdfast.models import Prompt, Reply, ScriptedModel, say, use, use_all


def prompt(*messages: UserMessage | ModelMessage) -> Prompt:
    return Prompt(system="", messages=messages)


HELLO = UserMessage(text="hello")


async def test_a_resumed_conversation_gets_the_reply_that_is_next() -> None:
    first = await ScriptedModel(["one", "two"]).ask(prompt(HELLO), lambda _: None)
    another_process = ScriptedModel(["one", "two"])
    second = await another_process.ask(prompt(HELLO, first.message, HELLO), lambda _: None)
    assert second.message.text == "two"


async def test_asking_twice_gives_the_same_reply_twice() -> None:
    model = ScriptedModel(["one", "two"])
    assert await model.ask(prompt(HELLO), lambda _: None) == await model.ask(prompt(HELLO), lambda _: None)


async def test_a_script_that_is_used_up_says_so() -> None:
    model = ScriptedModel([])
    with pytest.raises(ModelUnavailable, match="0 replies and was asked for reply 1"):
        await model.ask(prompt(HELLO), lambda _: None)


async def test_a_function_in_the_script_answers_what_it_is_asked() -> None:
    def echo(asked: Prompt) -> Reply:
        last = asked.messages[-1]
        assert isinstance(last, UserMessage)
        return say(last.text.upper())

    reply = await ScriptedModel([echo]).ask(prompt(HELLO), lambda _: None)
    assert reply.message.text == "HELLO"


async def test_no_two_calls_of_a_conversation_share_an_id() -> None:
    model = ScriptedModel([use_all(("a", {}), ("b", {}), text="both"), use("c", {})])
    first = await model.ask(prompt(HELLO), lambda _: None)
    second = await model.ask(prompt(HELLO, first.message), lambda _: None)
    calls = first.message.tool_calls + second.message.tool_calls
    assert len({call.id for call in calls}) == 3
    assert first.finish == "tool-calls"


async def test_an_id_given_in_the_script_stays() -> None:
    given = ModelMessage(parts=(TextPart(text=""), ToolCallPart(id="mine", tool="a", arguments={})))
    reply = await ScriptedModel([Reply(message=given, usage=say("").usage)]).ask(
        prompt(HELLO), lambda _: None
    )
    assert reply.message.tool_calls[0].id == "mine"
