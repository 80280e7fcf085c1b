"""Faults of a provider as a session sees them, over real HTTP: the right outcome, a ready session, all of it on record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from decimal import Decimal

import pytest
from tests.models.speaking import Serve, open_at
from tests.support.provider_stub import BrokenCall, Cut, Endless, Fault, Garbled, Hang, HttpError

from holdfast.core import (
    Error,
    ModelMessage,
    Nonconverged,
    Ok,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from holdfast.core.events import (
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    ToolReturned,
    TurnEnded,
)
from holdfast.guests import script
from holdfast.models import ModelSettings, Reply, say
from holdfast.session import Session
from holdfast.testing import memory_session

Begin = Callable[[str, str], Awaitable[Session]]
ONCE = ModelSettings(attempts=1, max_reply_bytes=5_000)

WIRES = ("anthropic", "openai", "openai-chat", "google")
each_wire = pytest.mark.parametrize("kind", WIRES)


@pytest.fixture
async def begin() -> AsyncIterator[Begin]:
    """A session whose model is at this address; everything else is in memory."""
    async with AsyncExitStack() as stack:

        async def start(kind: str, url: str) -> Session:
            model = open_at(kind, url, settings=ONCE)
            stack.push_async_callback(model.close)
            return await stack.enter_async_context(memory_session(model=model, can_ask=False))

        yield start


THINKS_AND_CALLS_TWICE = Reply(
    message=ModelMessage(
        parts=(
            ThinkingPart(text="two at once, then"),
            TextPart(text="I look – schön – at both."),
            ToolCallPart(id="a", tool="execute_code", arguments={"code": script({"print": "one"})}),
            ToolCallPart(id="b", tool="execute_code", arguments={"code": script({"print": "two"})}),
        )
    ),
    usage=Usage(input_tokens=20, output_tokens=20),
    finish="tool-calls",
)


@each_wire
async def test_thoughts_words_and_two_calls_come_in_bits_and_the_turn_answers_them_all(
    kind: str, serve: Serve, begin: Begin
) -> None:
    stub = await serve([THINKS_AND_CALLS_TWICE, "Both are there."], packet=5)
    session = await begin(kind, stub.url)
    shown: list[str] = []
    session.on_text = shown.append
    assert await session.send("look") == Ok(value="Both are there.")
    assert "".join(shown) == "I look – schön – at both.Both are there."
    assert len(shown) > 4
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    told = [entry.event.content for entry in recorded if isinstance(entry.event, ToolReturned)]
    assert told == ["one", "two"]
    assert len(stub.requests) == 2


FAULTS: dict[str, tuple[Fault, str]] = {
    "overloaded": (HttpError(status=429, retry_after="1"), "model-unavailable"),
    "broken": (HttpError(status=500), "model-unavailable"),
    "cut": (Cut(), "model-unavailable"),
    "garbled": (Garbled(), "model-unavailable"),
    "endless": (Endless(), "model-unavailable"),
    "broken-call": (BrokenCall(tool="execute_code"), "model-unavailable"),
    "full-window": (
        HttpError(status=400, message="prompt is too long: the context window"),
        "context-exceeded",
    ),
    "rejected": (HttpError(status=403, message="not for you"), "model-refused"),
}


# Google sends arguments as an object, so they cannot be broken text.
CASES = [(kind, fault) for kind in WIRES for fault in FAULTS if (kind, fault) != ("google", "broken-call")]


@pytest.mark.parametrize(("kind", "fault"), CASES)
async def test_a_fault_ends_the_turn_with_an_error_and_the_session_is_ready(
    kind: str, fault: str, serve: Serve, begin: Begin
) -> None:
    step, code = FAULTS[fault]
    stub = await serve([step, "fine"])
    session = await begin(kind, stub.url)
    outcome = await session.send("hello")
    assert isinstance(outcome, Error)
    assert outcome.code == code
    assert outcome.hint
    assert await session.send("again") == Ok(value="fine")


@each_wire
async def test_cancelling_a_turn_closes_the_connection_and_the_session_is_ready(
    kind: str, serve: Serve, begin: Begin
) -> None:
    stub = await serve([Hang(), "fine"])
    session = await begin(kind, stub.url)
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    sending = asyncio.create_task(session.send("hello"))
    await stub.hanging.wait()
    await session.cancel()
    assert sending.cancelled()
    await stub.left.wait()
    assert recorded[-1].event == TurnEnded(turn=1, outcome=Nonconverged(reason="cancelled"))
    assert await session.send("again") == Ok(value="fine")


@each_wire
async def test_what_was_paid_is_on_record_to_the_token(kind: str, serve: Serve, begin: Begin) -> None:
    counted = Usage(input_tokens=1000, output_tokens=200)
    stub = await serve([Reply(message=say("one").message, usage=counted), Cut(), "two"])
    session = await begin(kind, stub.url)
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    await session.send("hello")
    await session.send("and?")
    events = [entry.event for entry in recorded]
    [replied] = [event for event in events if isinstance(event, ModelReplied)]
    [failed] = [event for event in events if isinstance(event, ModelFailed)]
    assert (replied.usage.input_tokens, replied.usage.output_tokens) == (1000, 200)
    assert replied.usage.cost_usd is not None
    assert replied.usage.cost_usd > Decimal(0)
    assert failed.usage.input_tokens > 0
    assert session.budget.spent.tokens == 1200 + failed.usage.input_tokens + failed.usage.output_tokens


@each_wire
async def test_no_key_is_in_the_journal(kind: str, serve: Serve, begin: Begin) -> None:
    stub = await serve([HttpError(status=400, message="stub-key is bad"), "fine"])
    session = await begin(kind, stub.url)
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    await session.send("hello")
    await session.send("again")
    assert recorded
    assert "stub-key" not in repr(recorded)
