"""A provider, or whoever stands in its place, may send anything: it ends in a reply or in an error of ours."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.models.speaking import KEY, open_at
from tests.support.provider_stub import Raw, StubServer
from tests.support.provider_stub.anthropic import AnthropicWire
from tests.support.provider_stub.chat import ChatWire
from tests.support.provider_stub.gemini import GeminiWire
from tests.support.provider_stub.responses import ResponsesWire
from tests.support.provider_stub.wire import StreamEvent, Wire

from holdfast.core import ModelMessage, TextPart, ThinkingPart, ToolCallPart, Usage, UserMessage, encode
from holdfast.core.errors import ModelError
from holdfast.models import ModelSettings, OnText, Prompt, Reply

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
JUNK: list[Any] = [None, True, -1, 10**30, "", "x", [], {}, [[]], {"type": "x"}]


def damage(value: Any, draw: st.DataObject) -> Any:
    """One place of a JSON value, anywhere in it, taken out or replaced by junk."""
    if isinstance(value, dict) and value and draw.draw(st.booleans()):
        key = draw.draw(st.sampled_from(sorted(value)))
        if draw.draw(st.booleans()):
            del value[key]
        else:
            value[key] = damage(value[key], draw)
        return value
    if isinstance(value, list) and value and draw.draw(st.booleans()):
        place = draw.draw(st.integers(0, len(value) - 1))
        value[place] = damage(value[place], draw)
        return value
    return copy.deepcopy(draw.draw(st.sampled_from(JUNK)))


async def ask(kind: str, content: bytes, on_text: OnText = lambda _: None) -> Reply | ModelError:
    """How it ended; passes when that is a reply or an error of ours."""
    async with StubServer([Raw(content=content)], key=KEY) as stub:
        model = open_at(kind, stub.url, settings=ModelSettings(attempts=1))
        try:
            return await model.ask(Prompt(system="", messages=(UserMessage(text="hello"),)), on_text)
        except ModelError as error:
            return error
        finally:
            await model.close()


@pytest.mark.parametrize("kind", WIRES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_a_damaged_stream_ends_in_a_reply_or_an_error_of_ours(kind: str, data: st.DataObject) -> None:
    await ask_damaged(kind, data)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", WIRES)
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_a_thousand_damaged_streams_end_so_too(kind: str, data: st.DataObject) -> None:
    await ask_damaged(kind, data)


async def test_a_piece_of_text_that_is_no_text_is_a_malformed_reply() -> None:
    events = list(WIRES["anthropic"].events(REPLY, model="m", size=4))
    bodies: list[Any] = [body for name, body in events if name == "content_block_delta"]
    next(body["delta"] for body in bodies if "text" in body["delta"])["text"] = None
    ended = await ask("anthropic", frames_of(events))
    assert isinstance(ended, ModelError)
    assert ended.code == "model-unavailable"


async def test_a_thought_that_is_no_text_is_a_malformed_reply() -> None:
    events = list(WIRES["openai"].events(REPLY, model="m", size=4))
    bodies: list[Any] = [body for name, body in events if name and "reasoning" in name]
    thoughts = [body for body in bodies if "delta" in body]
    assert thoughts
    for thought in thoughts:
        thought["delta"] = True
    assert isinstance(await ask("openai", frames_of(events)), ModelError)


@pytest.mark.parametrize("kind", WIRES)
async def test_half_a_character_is_joined_with_its_other_half_or_marked(kind: str) -> None:
    content = frames_of(list(WIRES[kind].events(REPLY, model="m", size=4)))
    for piece, halved in {'"some"': r'"som\ud83d"', '" wor"': r'"\ude00wor"', '"ds"': r'"d\udc00"'}.items():
        content = content.replace(piece.encode(), halved.encode())
    shown: list[str] = []
    ended = await ask(kind, content, shown.append)
    assert isinstance(ended, Reply)
    assert ended.message.text == "".join(shown) == "som\U0001f600word\ufffd"


@pytest.mark.parametrize("kind", WIRES)
async def test_a_name_that_no_journal_can_hold_is_a_malformed_reply(kind: str) -> None:
    content = frames_of(list(WIRES[kind].events(REPLY, model="m", size=4)))
    assert isinstance(await ask(kind, content.replace(b'"look"', rb'"lo\ud800k"')), ModelError)


@pytest.mark.parametrize("kind", [kind for kind in WIRES if kind != "google"])  # whose arguments are no text
async def test_arguments_nested_without_end_are_a_malformed_reply(kind: str) -> None:
    content = frames_of(list(WIRES[kind].events(REPLY, model="m", size=1000)))
    nested = b"[" * 3000 + b"]" * 3000
    assert isinstance(await ask(kind, content.replace(rb"\"a\"", nested)), ModelError)


async def ask_damaged(kind: str, data: st.DataObject) -> None:
    events = list(WIRES[kind].events(REPLY, model="m", size=4))
    place = data.draw(st.integers(0, len(events) - 1))
    name, body = events[place]
    events[place] = name, damage(copy.deepcopy(body), data)
    if data.draw(st.booleans()):
        del events[data.draw(st.integers(0, len(events) - 1))]
    await ask(kind, frames_of(events))


def frames_of(events: Sequence[StreamEvent]) -> bytes:
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
async def test_any_bytes_at_all_end_in_a_reply_or_an_error_of_ours(kind: str, content: bytes) -> None:
    await ask(kind, content)


async def test_an_error_of_whoever_shows_the_words_is_not_blamed_on_the_provider() -> None:
    class ScreenBroke(Exception):
        pass

    def show(_: str) -> None:
        raise ScreenBroke

    async with StubServer(["words"], key=KEY) as stub:
        model = open_at("anthropic", stub.url)
        with pytest.raises(ScreenBroke):
            await model.ask(Prompt(system="", messages=(UserMessage(text="hello"),)), show)
        await model.close()
