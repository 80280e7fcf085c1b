"""The scripted model: its reply depends on the conversation alone."""

import pytest

from holdfast.core import ModelMessage, TextPart, ToolCallPart, UserMessage
from holdfast.core.errors import ModelUnavailable
from holdfast.models import Prompt, Reply, ScriptedModel, say, use, use_all


def prompt(*messages: UserMessage | ModelMessage) -> Prompt:
    return Prompt(system="", messages=messages)


HELLO = UserMessage(text="hello")


async def test_a_resumed_conversation_gets_the_next_reply() -> None:
    first = await ScriptedModel(["one", "two"]).ask(prompt(HELLO), lambda _: None)
    another_process = ScriptedModel(["one", "two"])
    second = await another_process.ask(prompt(HELLO, first.message, HELLO), lambda _: None)
    assert second.message.text == "two"


async def test_the_same_request_gets_the_same_reply() -> None:
    model = ScriptedModel(["one", "two"])
    assert await model.ask(prompt(HELLO), lambda _: None) == await model.ask(prompt(HELLO), lambda _: None)


async def test_a_script_without_a_next_reply_is_unavailable() -> None:
    model = ScriptedModel([])
    with pytest.raises(ModelUnavailable, match="0 replies but reply 1 was requested"):
        await model.ask(prompt(HELLO), lambda _: None)


async def test_a_function_in_the_script_makes_the_reply() -> None:
    def echo(prompt: Prompt) -> Reply:
        last = prompt.messages[-1]
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


async def test_an_id_in_the_script_is_kept() -> None:
    given = ModelMessage(parts=(TextPart(text=""), ToolCallPart(id="mine", tool="a", arguments={})))
    reply = await ScriptedModel([Reply(message=given, usage=say("").usage)]).ask(
        prompt(HELLO), lambda _: None
    )
    assert reply.message.tool_calls[0].id == "mine"
