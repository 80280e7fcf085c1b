"""What goes over the wire: nothing of a reply is lost on its way back, and nothing goes where it should not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.speaking import PROVIDERS, Serve, open_at
from tests.support.provider_stub import StubServer

from holdfast.core import (
    Json,
    ModelMessage,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolMessage,
    ToolReturn,
    Usage,
    UserMessage,
)
from holdfast.models import Prompt, Reply, ToolOffer, say, use
from holdfast.models.translate import to_library

HELLO = UserMessage(text="hello")
THOUGHTFUL = Reply(
    message=ModelMessage(parts=(ThinkingPart(text="secret thought"), TextPart(text="Done."))),
    usage=Usage(input_tokens=5, output_tokens=5),
)


async def first_reply(kind: str, stub: StubServer) -> ModelMessage:
    model = open_at(kind, stub.url)
    reply = await model.ask(Prompt(system="", messages=(HELLO,)), lambda _: None)
    await model.close()
    return reply.message


async def second_body(
    kind: str, stub: StubServer, *messages: UserMessage | ModelMessage | ToolMessage
) -> str:
    """What is sent when these messages are."""
    model = open_at(kind, stub.url)
    await model.ask(Prompt(system="House rules.", messages=messages), lambda _: None)
    await model.close()
    return json.dumps(stub.requests[-1].body)


@pytest.mark.parametrize(("kind", "seal"), [("anthropic", "c2lnbmVk"), ("openai", "c2VhbGVk")])
async def test_a_signed_thought_goes_back_to_who_signed_it(kind: str, seal: str, serve: Serve) -> None:
    stub = await serve([THOUGHTFUL, "ok"])
    message = await first_reply(kind, stub)
    assert seal in await second_body(kind, stub, HELLO, message, HELLO)


async def test_a_signed_thought_goes_to_nobody_else(serve: Serve) -> None:
    message = await first_reply("anthropic", await serve([THOUGHTFUL]))
    stub = await serve(["never said", "ok"])
    body = await second_body("openai-chat", stub, HELLO, message, HELLO)
    assert "Done." in body
    assert "c2lnbmVk" not in body
    assert "secret thought" not in body


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_a_failed_call_is_told_as_one(kind: str, serve: Serve) -> None:
    stub = await serve([use("look", {}), "ok"])
    message = await first_reply(kind, stub)
    [call] = message.tool_calls
    returned = ToolMessage(
        returns=(ToolReturn(id=call.id, tool="look", content="it is gone", is_error=True),)
    )
    body = await second_body(kind, stub, HELLO, message, returned)
    assert "it is gone" in body
    if kind == "anthropic":
        assert '"is_error": true' in body


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_the_system_prompt_and_the_tools_are_sent(kind: str, serve: Serve) -> None:
    stub = await serve(["ok"])
    model = open_at(kind, stub.url)
    schema: Json = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert isinstance(schema, dict)
    tool = ToolOffer(name="read_file", description="Read a file.", parameters=schema)
    await model.ask(
        Prompt(system="House rules.", messages=(HELLO,), tools=(tool,), max_tokens=77), lambda _: None
    )
    await model.close()
    body = json.dumps(stub.requests[0].body)
    for sent in ("House rules.", "read_file", "Read a file.", '"path"', "77"):
        assert sent in body


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_an_empty_reply_in_the_history_is_not_sent(kind: str, serve: Serve) -> None:
    stub = await serve(["ok"])
    body = await second_body(kind, stub, HELLO, ModelMessage(parts=()), UserMessage(text="still there?"))
    assert "still there?" in body


async def test_openai_is_asked_to_keep_nothing(serve: Serve) -> None:
    stub = await serve(["ok"])
    assert '"store": false' in await second_body("openai", stub, HELLO)


async def test_anthropic_is_asked_to_cache_the_prompt(serve: Serve) -> None:
    stub = await serve(["ok"])
    assert "cache_control" in await second_body("anthropic", stub, HELLO)


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_what_stays_on_this_machine_goes_through_no_proxy(
    kind: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    stub = await serve(["ok"])
    assert "hello" in await second_body(kind, stub, HELLO)


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_keys_of_the_process_are_not_used_instead_of_ours(
    kind: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "another-key")
    stub = await serve(["ok"])
    await second_body(kind, stub, HELLO)
    assert stub.requests[-1].has_right_key


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_calls_with_one_id_are_told_apart(kind: str, serve: Serve) -> None:
    twins = tuple(ToolCallPart(id="same", tool="look", arguments={"at": at}) for at in "ab")
    stub = await serve(
        [Reply(message=ModelMessage(parts=twins), usage=Usage(input_tokens=1), finish="tool-calls")]
    )
    message = await first_reply(kind, stub)
    assert [call.arguments for call in message.tool_calls] == [{"at": "a"}, {"at": "b"}]
    assert len({call.id for call in message.tool_calls}) == 2


@given(
    wire=st.text()
    | st.sampled_from(["{}", "[]", "null", '{"format":2,"provider":"anthropic","response":{}}'])
)
def test_whatever_stands_in_wire_the_reply_can_be_sent(wire: str) -> None:
    message = ModelMessage(parts=say("said").message.parts, wire=wire)
    [_, sent] = to_library(Prompt(system="", messages=(HELLO, message)), "anthropic")
    assert "said" in repr(sent)


@given(response=st.dictionaries(st.text(), st.none() | st.integers() | st.text(), max_size=3))
def test_a_wire_that_holds_no_response_is_rebuilt_from_the_parts(
    response: dict[str, int | str | None],
) -> None:
    wire = json.dumps({"format": 1, "provider": "anthropic", "response": response})
    message = ModelMessage(parts=say("said").message.parts, wire=wire)
    [_, sent] = to_library(Prompt(system="", messages=(HELLO, message)), "anthropic")
    assert "said" in repr(sent)


async def test_a_reply_that_its_parts_say_all_of_is_kept_once(serve: Serve) -> None:
    assert (await first_reply("server", await serve(["plain words"]))).wire is None
    signed = (await first_reply("anthropic", await serve([THOUGHTFUL]))).wire
    assert signed is not None
    assert "timestamp" not in signed
