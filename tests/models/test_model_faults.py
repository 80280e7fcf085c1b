"""Faults of providers, over real HTTP: each ends in the right error, or in a reply after a retry."""

import asyncio

import pytest
from tests.models.create import SPECS, WIRE_FORMATS, InstantClock, StartStub, create_at
from tests.support.provider_stub import BrokenCall, Cut, Endless, Fault, Garbled, Hang, HttpError

from holdfast.core import UserMessage
from holdfast.core.errors import ContextExceeded, ModelError, ModelRefused, ModelUnavailable
from holdfast.models import ModelSettings, Prompt, ReplyPiece, ToolOffer

HELLO = Prompt(system="Be brief.", messages=(UserMessage(text="hello"),))
TOOL = ToolOffer(name="look", description="", parameters={"type": "object", "properties": {}})
TIMEOUT = ModelSettings().timeout_seconds

KINDS = [
    *WIRE_FORMATS,
    *(pytest.param(kind, marks=pytest.mark.soak) for kind in SPECS if kind not in WIRE_FORMATS),
]
"""One provider for each wire format; the long form has them all."""
each_provider = pytest.mark.parametrize("kind", KINDS)
# Google sends arguments as an object, not as text.
each_provider_with_text_arguments = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind != "google"]
)


async def ask(
    kind: str, url: str, *, clock: InstantClock | None = None, settings: ModelSettings | None = None
) -> str:
    """The text of the reply."""
    model = create_at(kind, url, clock=clock, settings=settings)
    try:
        return (await model.ask(HELLO, lambda _: None)).message.text
    finally:
        await model.close()


@each_provider
async def test_a_retry_waits_as_long_as_an_overloaded_provider_requests(
    kind: str, start_stub: StartStub
) -> None:
    stub = await start_stub([HttpError(status=429, retry_after="7"), "at last"])
    clock = InstantClock(TIMEOUT)
    assert await ask(kind, stub.url, clock=clock) == "at last"
    assert clock.waits == [7.0]


@each_provider
async def test_a_retry_after_of_zero_still_waits(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([HttpError(status=429, retry_after="0"), "at last"])
    clock = InstantClock(TIMEOUT)
    assert await ask(kind, stub.url, clock=clock) == "at last"
    assert clock.waits == [0.5]


@each_provider
async def test_waits_double_without_a_retry_after(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([HttpError(status=500), HttpError(status=503), HttpError(status=500), "at last"])
    clock = InstantClock(TIMEOUT)
    assert await ask(kind, stub.url, clock=clock) == "at last"
    assert clock.waits == [0.5, 1.0, 2.0]


@each_provider
async def test_a_provider_that_keeps_failing_is_unavailable(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([HttpError(status=500)])
    with pytest.raises(ModelUnavailable, match="HTTP 500"):
        await ask(kind, stub.url, settings=ModelSettings(max_attempts=3))
    assert len(stub.requests) == 3


@each_provider
async def test_a_wait_longer_than_the_time_left_is_not_started(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([HttpError(status=429, retry_after="3600"), "too late"])
    clock = InstantClock(TIMEOUT)
    with pytest.raises(ModelUnavailable):
        await ask(kind, stub.url, clock=clock)
    assert clock.waits == []


@each_provider
async def test_a_broken_connection_is_retried_and_the_person_sees_it(
    kind: str, start_stub: StartStub
) -> None:
    stub = await start_stub([Cut(text="half a "), "the whole"])
    model = create_at(kind, stub.url)
    shown: list[ReplyPiece] = []
    reply = await model.ask(HELLO, shown.append)
    await model.close()
    assert reply.message.text == "the whole"
    [notice] = [number for number, piece in enumerate(shown) if piece.kind == "retry"]
    assert "".join(piece.text for piece in shown[:notice]) == "half a "
    assert shown[notice].text.endswith("; attempt 2 of 5 in 1 s")
    assert "".join(piece.text for piece in shown[notice + 1 :]) == "the whole"


@each_provider
async def test_interrupted_attempts_are_charged(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Cut(), "ok"])
    model = create_at(kind, stub.url)
    usage = (await model.ask(HELLO, lambda _: None)).usage
    await model.close()
    assert usage.input_tokens > 100  # what the stub reports for the reply alone


@each_provider
async def test_the_cost_of_failed_attempts_is_in_the_error(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Cut()])
    with pytest.raises(ModelUnavailable) as caught:
        await ask(kind, stub.url, settings=ModelSettings(max_attempts=2))
    assert caught.value.usage is not None
    assert caught.value.usage.input_tokens > 0


@each_provider
async def test_a_stream_that_is_not_json_is_retried(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Garbled(), "readable"])
    assert await ask(kind, stub.url) == "readable"


@each_provider_with_text_arguments
async def test_arguments_that_are_not_json_are_rejected(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([BrokenCall(tool="look")])
    model = create_at(kind, stub.url, settings=ModelSettings(max_attempts=2))
    with pytest.raises(ModelUnavailable, match="'look' are not a JSON object"):
        await model.ask(Prompt(system="", messages=HELLO.messages, tools=(TOOL,)), lambda _: None)
    await model.close()
    assert len(stub.requests) == 2


@each_provider_with_text_arguments
async def test_arguments_that_are_not_an_object_are_rejected(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([BrokenCall(tool="look", arguments='["a"]')])
    model = create_at(kind, stub.url, settings=ModelSettings(max_attempts=1))
    with pytest.raises(ModelUnavailable):
        await model.ask(Prompt(system="", messages=HELLO.messages, tools=(TOOL,)), lambda _: None)
    await model.close()


@each_provider
async def test_an_endless_reply_is_cut_off_and_not_retried(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Endless()])
    with pytest.raises(ModelUnavailable, match="is longer than max_reply_bytes"):
        await ask(kind, stub.url, settings=ModelSettings(max_reply_bytes=500))
    await stub.disconnected.wait()
    assert len(stub.requests) == 1


@each_provider
async def test_the_time_limit_ends_a_reply_that_hangs(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Hang()])

    class TimesOutWhenHanging(InstantClock):
        async def sleep(self, seconds: float) -> None:
            await stub.hanging.wait()

    with pytest.raises(ModelUnavailable, match="within 600 seconds"):
        await ask(kind, stub.url, clock=TimesOutWhenHanging(TIMEOUT))
    await stub.disconnected.wait()


@each_provider
async def test_cancelling_closes_the_connection(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Hang()])
    request = asyncio.create_task(ask(kind, stub.url))
    await stub.hanging.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await stub.disconnected.wait()


@each_provider
async def test_after_a_cancelled_reply_the_same_model_answers(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Hang(), "here"])
    model = create_at(kind, stub.url)
    request = asyncio.create_task(model.ask(HELLO, lambda _: None))
    await stub.hanging.wait()
    request.cancel()
    await asyncio.wait([request])
    assert (await model.ask(HELLO, lambda _: None)).message.text == "here"
    await model.close()


OVERFLOWS: dict[str, Fault] = {
    "anthropic": HttpError(status=400, message="prompt is too long: 250000 tokens > 200000 maximum"),
    "openai": HttpError(
        status=400, kind="context_length_exceeded", message="Your input exceeds the context window"
    ),
    "openai-chat": HttpError(
        status=400, kind="context_length_exceeded", message="maximum context length is 8192"
    ),
    "google": HttpError(
        status=400,
        message="The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "ollama": HttpError(status=400, message="input length exceeds the context length"),
    "server": HttpError(
        status=400, kind="exceed_context_size_error", message="the request exceeds the available context size"
    ),
}


@each_provider
async def test_a_full_context_window_is_reported_with_ways_out(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([OVERFLOWS[kind]])
    with pytest.raises(ContextExceeded, match="Context window exceeded") as caught:
        await ask(kind, stub.url)
    assert caught.value.hint is not None
    assert "/compact" in caught.value.hint
    assert "/fork" in caught.value.hint
    assert len(stub.requests) == 1


@each_provider
async def test_a_wrong_key_is_refused_without_a_retry(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub(["never said"])
    wrong = "wrong-key-that-must-not-show"
    model = create_at(kind, stub.url, key=wrong)
    with pytest.raises(ModelRefused, match="refused the API key") as caught:
        await model.ask(HELLO, lambda _: None)
    await model.close()
    assert len(stub.requests) == 1
    assert wrong not in f"{caught.value} {caught.value.hint} {model!r}"


@each_provider
async def test_an_address_where_nothing_answers_is_reported_as_such(kind: str) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be reached: nothing answers at its address") as caught:
        await ask(kind, "http://127.0.0.1:9")
    assert "check the network" in str(caught.value.hint)


@each_provider
async def test_a_key_in_an_error_message_is_redacted(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([HttpError(status=400, message="the key stub-key may not use this")])
    with pytest.raises(ModelRefused) as caught:
        await ask(kind, stub.url)
    assert "stub-key" not in str(caught.value)


@each_provider
async def test_an_unknown_model_is_refused(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([HttpError(status=404, kind="not_found_error", message="model: no-such")])
    with pytest.raises(ModelRefused, match="there is no"):
        await ask(kind, stub.url)


@each_provider
async def test_an_unreachable_server_is_unavailable(kind: str) -> None:
    with pytest.raises(ModelUnavailable):
        await ask(kind, "http://127.0.0.1:9", settings=ModelSettings(max_attempts=2))


@each_provider
async def test_a_reply_may_be_split_at_any_byte(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub(["Grüße 🪸 aus 北京"], packet=5)
    assert await ask(kind, stub.url) == "Grüße 🪸 aus 北京"


@each_provider
async def test_errors_do_not_chain_the_library_error_with_its_bodies(
    kind: str, start_stub: StartStub
) -> None:
    stub = await start_stub([HttpError(status=400, message="no")])
    with pytest.raises(ModelError) as caught:
        await ask(kind, stub.url)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
