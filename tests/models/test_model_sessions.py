"""Faults of a provider in a session, over real HTTP: the right outcome, a ready session, everything recorded."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from decimal import Decimal

import pytest
from tests.models.create import WIRE_FORMATS, StartStub, create_at
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
from holdfast.models import ModelSettings, Reply, ReplyPiece, say
from holdfast.session import Session
from holdfast.testing import memory_session

StartSession = Callable[[str, str], Awaitable[Session]]
ONE_ATTEMPT = ModelSettings(max_attempts=1, max_reply_bytes=1_000)

each_wire = pytest.mark.parametrize("kind", WIRE_FORMATS)


@pytest.fixture
async def start_session() -> AsyncIterator[StartSession]:
    """Starts a session whose model is at this address; everything else is in memory."""
    async with AsyncExitStack() as stack:

        async def start(kind: str, url: str) -> Session:
            model = create_at(kind, url, settings=ONE_ATTEMPT)
            stack.push_async_callback(model.close)
            return await stack.enter_async_context(memory_session(model=model, can_ask=False))

        yield start


REASONING_AND_TWO_CALLS = Reply(
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
async def test_a_split_reply_with_reasoning_and_two_calls_is_handled(
    kind: str, start_stub: StartStub, start_session: StartSession
) -> None:
    stub = await start_stub([REASONING_AND_TWO_CALLS, "Both are there."], packet=5)
    session = await start_session(kind, stub.url)
    shown: list[ReplyPiece] = []
    session.on_piece = shown.append
    assert await session.send("look") == Ok(value="Both are there.")
    assert (
        "".join(piece.text for piece in shown if piece.kind == "text")
        == "I look – schön – at both.Both are there."
    )
    assert len(shown) > 4
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    results = [entry.event.content for entry in recorded if isinstance(entry.event, ToolReturned)]
    assert results == ["one", "two"]
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


# test_model_faults.py covers every fault in every wire format; here one format is enough.
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_ends_the_turn_with_an_error_and_the_session_is_ready(
    fault: str, start_stub: StartStub, start_session: StartSession
) -> None:
    step, code = FAULTS[fault]
    stub = await start_stub([step, "fine"])
    session = await start_session("anthropic", stub.url)
    outcome = await session.send("hello")
    assert isinstance(outcome, Error)
    assert outcome.code == code
    assert outcome.hint
    assert await session.send("again") == Ok(value="fine")


@each_wire
async def test_cancelling_a_turn_closes_the_connection_and_the_session_is_ready(
    kind: str, start_stub: StartStub, start_session: StartSession
) -> None:
    stub = await start_stub([Hang(), "fine"])
    session = await start_session(kind, stub.url)
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    sending = asyncio.create_task(session.send("hello"))
    await stub.hanging.wait()
    await session.cancel()
    assert sending.cancelled()
    await stub.disconnected.wait()
    assert recorded[-1].event == TurnEnded(turn=1, outcome=Nonconverged(reason="cancelled"))
    assert await session.send("again") == Ok(value="fine")


@each_wire
async def test_the_exact_cost_is_recorded(
    kind: str, start_stub: StartStub, start_session: StartSession
) -> None:
    counted = Usage(input_tokens=1000, output_tokens=200)
    stub = await start_stub([Reply(message=say("one").message, usage=counted), Cut(), "two"])
    session = await start_session(kind, stub.url)
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
async def test_the_journal_does_not_contain_the_key(
    kind: str, start_stub: StartStub, start_session: StartSession
) -> None:
    stub = await start_stub([HttpError(status=400, message="stub-key is bad"), "fine"])
    session = await start_session(kind, stub.url)
    recorded: list[RecordedEvent] = []
    session.follow(recorded.append)
    await session.send("hello")
    await session.send("again")
    assert recorded
    assert "stub-key" not in repr(recorded)
