"""A provider may send anything. Every response ends in a reply or in a ModelError."""

import copy
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.models.create import KEY, create_at
from tests.support.provider_stub import Raw, StubServer
from tests.support.provider_stub.anthropic import AnthropicWire
from tests.support.provider_stub.chat import ChatWire
from tests.support.provider_stub.gemini import GeminiWire
from tests.support.provider_stub.responses import ResponsesWire
from tests.support.provider_stub.wire import StreamEvent, Wire

from holdfast.core import ModelMessage, TextPart, ThinkingPart, ToolCallPart, Usage, UserMessage, encode
from holdfast.core.errors import ModelError
from holdfast.models import Model, ModelSettings, OnPiece, Prompt, Reply, ReplyPiece

Ask = Callable[..., Awaitable[Reply | ModelError]]
WIRES: dict[str, Wire] = {
    "anthropic": AnthropicWire(),
    "openai": ResponsesWire(),
    "openai-chat": ChatWire(),
    "google": GeminiWire(),
}
REPLY = Reply(
    message=ModelMessage(
        parts=(
            ThinkingPart(text="hm"),
            TextPart(text="some words"),
            ToolCallPart(id="c1", tool="look", arguments={"at": "a"}),
        )
    ),
    usage=Usage(input_tokens=9, output_tokens=9),
    finish="tool-calls",
)
HELLO = Prompt(system="", messages=(UserMessage(text="hello"),))
JUNK: list[Any] = [None, True, -1, 10**30, "", "x", [], {}, [[]], {"type": "x"}]


def damage(value: Any, draw: st.DataObject) -> Any:
    """Remove or replace one part of a JSON value, at any depth."""
    if isinstance(value, dict) and value and draw.draw(st.booleans()):
        key = draw.draw(st.sampled_from(sorted(value)))
        if draw.draw(st.booleans()):
            del value[key]
        else:
            value[key] = damage(value[key], draw)
        return value
    if isinstance(value, list) and value and draw.draw(st.booleans()):
        index = draw.draw(st.integers(0, len(value) - 1))
        value[index] = damage(value[index], draw)
        return value
    return copy.deepcopy(draw.draw(st.sampled_from(JUNK)))


@pytest.fixture
async def ask(stack: AsyncExitStack) -> Ask:
    """Returns the reply or the ModelError that a response body leads to. One stub and one model serve all examples."""
    body = b""
    stub = await stack.enter_async_context(StubServer(lambda _: Raw(content=body), key=KEY))
    models: dict[str, Model] = {}

    async def send(kind: str, content: bytes, on_piece: OnPiece = lambda _: None) -> Reply | ModelError:
        nonlocal body
        body = content
        if kind not in models:
            models[kind] = create_at(kind, stub.url, settings=ModelSettings(max_attempts=1))
            stack.push_async_callback(models[kind].close)
        try:
            return await models[kind].ask(HELLO, on_piece)
        except ModelError as error:
            return error

    return send


@pytest.mark.parametrize("kind", WIRES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_a_damaged_stream_ends_in_a_reply_or_an_error(ask: Ask, kind: str, data: st.DataObject) -> None:
    await ask_damaged(ask, kind, data)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", WIRES)
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_a_thousand_damaged_streams_end_in_a_reply_or_an_error(
    ask: Ask, kind: str, data: st.DataObject
) -> None:
    await ask_damaged(ask, kind, data)


async def test_text_that_is_not_a_string_is_a_malformed_reply(ask: Ask) -> None:
    events = list(WIRES["anthropic"].events(REPLY, model="m", size=4))
    bodies: list[Any] = [body for name, body in events if name == "content_block_delta"]
    next(body["delta"] for body in bodies if "text" in body["delta"])["text"] = None
    ended = await ask("anthropic", to_frames(events))
    assert isinstance(ended, ModelError)
    assert ended.code == "model-unavailable"


async def test_reasoning_that_is_not_a_string_is_a_malformed_reply(ask: Ask) -> None:
    events = list(WIRES["openai"].events(REPLY, model="m", size=4))
    bodies: list[Any] = [body for name, body in events if name and "reasoning" in name]
    reasoning = [body for body in bodies if "delta" in body]
    assert reasoning
    for delta in reasoning:
        delta["delta"] = True
    assert isinstance(await ask("openai", to_frames(events)), ModelError)


@pytest.mark.parametrize("kind", WIRES)
async def test_surrogate_halves_are_joined_or_replaced(ask: Ask, kind: str) -> None:
    content = to_frames(list(WIRES[kind].events(REPLY, model="m", size=4)))
    for piece, halved in {'"some"': r'"som\ud83d"', '" wor"': r'"\ude00wor"', '"ds"': r'"d\udc00"'}.items():
        content = content.replace(piece.encode(), halved.encode())
    shown: list[ReplyPiece] = []
    ended = await ask(kind, content, shown.append)
    assert isinstance(ended, Reply)
    assert (
        ended.message.text
        == "".join(piece.text for piece in shown if piece.kind == "text")
        == "som\U0001f600word\ufffd"
    )


@pytest.mark.parametrize("kind", WIRES)
async def test_a_name_that_cannot_be_recorded_is_a_malformed_reply(ask: Ask, kind: str) -> None:
    content = to_frames(list(WIRES[kind].events(REPLY, model="m", size=4)))
    assert isinstance(await ask(kind, content.replace(b'"look"', rb'"lo\ud800k"')), ModelError)


@pytest.mark.parametrize("kind", [kind for kind in WIRES if kind != "google"])  # whose arguments are not text
async def test_deeply_nested_arguments_are_a_malformed_reply(ask: Ask, kind: str) -> None:
    content = to_frames(list(WIRES[kind].events(REPLY, model="m", size=1000)))
    nested = b"[" * 3000 + b"]" * 3000
    assert isinstance(await ask(kind, content.replace(rb"\"a\"", nested)), ModelError)


async def ask_damaged(ask: Ask, kind: str, data: st.DataObject) -> None:
    events = list(WIRES[kind].events(REPLY, model="m", size=4))
    index = data.draw(st.integers(0, len(events) - 1))
    name, body = events[index]
    events[index] = name, damage(copy.deepcopy(body), data)
    if data.draw(st.booleans()):
        del events[data.draw(st.integers(0, len(events) - 1))]
    await ask(kind, to_frames(events))


def to_frames(events: Sequence[StreamEvent]) -> bytes:
    return b"".join(
        (f"event: {name}\n" if name else "").encode()
        + b"data: "
        + (body.encode() if body == "[DONE]" else encode(body))
        + b"\n\n"
        for name, body in events
    )


@pytest.mark.parametrize("kind", WIRES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"data: {}\n\n")
@example(content=b"data: null\n\n")
@example(content=b"data: [1]\n\n" * 3)
@example(content=b"event: message_start\ndata: {}\n\n")
@example(content=b"event: error\ndata: {}\n\n")
async def test_any_bytes_end_in_a_reply_or_an_error(ask: Ask, kind: str, content: bytes) -> None:
    await ask(kind, content)


async def test_an_exception_of_on_piece_is_not_blamed_on_the_provider() -> None:
    class DisplayFailed(Exception):
        pass

    def show(_: ReplyPiece) -> None:
        raise DisplayFailed

    async with StubServer(["words"], key=KEY) as stub:
        model = create_at("anthropic", stub.url)
        with pytest.raises(DisplayFailed):
            await model.ask(HELLO, show)
        await model.close()


def test_warnings_in_words_of_a_provider_are_not_printed() -> None:
    program = (
        "import warnings, holdfast.models.provider_model\n"
        "warnings.warn_explicit('from the provider', UserWarning, 'openai.py', 1, module='pydantic_ai.models.openai')\n"
        "warnings.warn_explicit('from elsewhere', UserWarning, 'other.py', 1, module='other')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "from elsewhere" in done.stderr
    assert "from the provider" not in done.stderr
