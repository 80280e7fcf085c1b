"""What is sent to providers: a reply goes back complete, and nothing goes to the wrong provider."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.create import SPECS, WIRE_FORMATS, StartStub, create_at
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
    model = create_at(kind, stub.url)
    reply = await model.ask(Prompt(system="", messages=(HELLO,)), lambda _: None)
    await model.close()
    return reply.message


async def second_body(
    kind: str, stub: StubServer, *messages: UserMessage | ModelMessage | ToolMessage
) -> str:
    """The body of a request with these messages."""
    model = create_at(kind, stub.url)
    await model.ask(Prompt(system="House rules.", messages=messages), lambda _: None)
    await model.close()
    return json.dumps(stub.requests[-1].body)


@pytest.mark.parametrize(("kind", "signature"), [("anthropic", "c2lnbmVk"), ("openai", "c2VhbGVk")])
async def test_signed_reasoning_goes_back_to_its_provider(
    kind: str, signature: str, start_stub: StartStub
) -> None:
    stub = await start_stub([THOUGHTFUL, "ok"])
    message = await first_reply(kind, stub)
    assert signature in await second_body(kind, stub, HELLO, message, HELLO)


async def test_signed_reasoning_goes_to_no_other_provider(start_stub: StartStub) -> None:
    message = await first_reply("anthropic", await start_stub([THOUGHTFUL]))
    stub = await start_stub(["never said", "ok"])
    body = await second_body("openai-chat", stub, HELLO, message, HELLO)
    assert "Done." in body
    assert "c2lnbmVk" not in body
    assert "secret thought" not in body


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_a_failed_call_is_sent_as_failed(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([use("look", {}), "ok"])
    message = await first_reply(kind, stub)
    [call] = message.tool_calls
    returned = ToolMessage(
        returns=(ToolReturn(id=call.id, tool="look", content="it is gone", is_error=True),)
    )
    body = await second_body(kind, stub, HELLO, message, returned)
    assert "it is gone" in body
    if kind == "anthropic":
        assert '"is_error": true' in body


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_the_system_prompt_and_the_tools_are_sent(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub(["ok"])
    model = create_at(kind, stub.url)
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


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_an_empty_reply_in_the_history_is_not_sent(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub(["ok"])
    body = await second_body(kind, stub, HELLO, ModelMessage(parts=()), UserMessage(text="still there?"))
    assert "still there?" in body


async def test_openai_is_asked_not_to_store_the_conversation(start_stub: StartStub) -> None:
    stub = await start_stub(["ok"])
    assert '"store": false' in await second_body("openai", stub, HELLO)


async def test_anthropic_is_asked_to_cache_the_prompt(start_stub: StartStub) -> None:
    stub = await start_stub(["ok"])
    assert "cache_control" in await second_body("anthropic", stub, HELLO)


@pytest.mark.parametrize("kind", SPECS)
async def test_a_request_to_this_machine_bypasses_the_proxy(
    kind: str, start_stub: StartStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    stub = await start_stub(["ok"])
    assert "hello" in await second_body(kind, stub, HELLO)


@pytest.mark.parametrize("kind", SPECS)
async def test_keys_in_the_process_environment_do_not_replace_the_given_key(
    kind: str, start_stub: StartStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "another-key")
    stub = await start_stub(["ok"])
    await second_body(kind, stub, HELLO)
    assert stub.requests[-1].has_right_key


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_calls_with_the_same_id_get_different_ids(kind: str, start_stub: StartStub) -> None:
    twins = tuple(ToolCallPart(id="same", tool="look", arguments={"at": at}) for at in "ab")
    stub = await start_stub(
        [Reply(message=ModelMessage(parts=twins), usage=Usage(input_tokens=1), finish="tool-calls")]
    )
    message = await first_reply(kind, stub)
    assert [call.arguments for call in message.tool_calls] == [{"at": "a"}, {"at": "b"}]
    assert len({call.id for call in message.tool_calls}) == 2


@given(
    wire=st.text()
    | st.sampled_from(["{}", "[]", "null", '{"format":2,"provider":"anthropic","response":{}}'])
)
def test_a_reply_with_any_wire_text_can_be_sent(wire: str) -> None:
    message = ModelMessage(parts=say("said").message.parts, wire=wire)
    [_, sent] = to_library(Prompt(system="", messages=(HELLO, message)), "anthropic")
    assert "said" in repr(sent)


@given(response=st.dictionaries(st.text(), st.none() | st.integers() | st.text(), max_size=3))
def test_a_wire_without_a_response_is_rebuilt_from_the_parts(
    response: dict[str, int | str | None],
) -> None:
    wire = json.dumps({"format": 1, "provider": "anthropic", "response": response})
    message = ModelMessage(parts=say("said").message.parts, wire=wire)
    [_, sent] = to_library(Prompt(system="", messages=(HELLO, message)), "anthropic")
    assert "said" in repr(sent)


async def test_a_reply_whose_parts_are_complete_has_no_wire(start_stub: StartStub) -> None:
    assert (await first_reply("server", await start_stub(["plain words"]))).wire is None
    signed = (await first_reply("anthropic", await start_stub([THOUGHTFUL]))).wire
    assert signed is not None
    assert "timestamp" not in signed
