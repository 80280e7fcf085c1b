"""What providers do wrong, over real HTTP: each fault ends in the right error or in a reply after all."""

import asyncio

import pytest
from tests.models.speaking import PROVIDERS, Serve, StillClock, open_at
from tests.support.provider_stub import BrokenCall, Cut, Endless, Fault, Garbled, Hang, HttpError

from holdfast.core import UserMessage
from holdfast.core.errors import ContextExceeded, ModelError, ModelRefused, ModelUnavailable
from holdfast.models import ModelSettings, Prompt, ToolOffer

HELLO = Prompt(system="Be brief.", messages=(UserMessage(text="hello"),))
TOOL = ToolOffer(name="look", description="", parameters={"type": "object", "properties": {}})
TOTAL = ModelSettings().total_seconds

each_provider = pytest.mark.parametrize("kind", PROVIDERS)
# Google sends arguments as an object, never as text.
each_provider_with_text_arguments = pytest.mark.parametrize(
    "kind", [kind for kind in PROVIDERS if kind != "google"]
)


async def ask(
    kind: str, url: str, *, still: StillClock | None = None, settings: ModelSettings | None = None
) -> str:
    """The words of the reply; what was shown goes nowhere."""
    model = open_at(kind, url, still=still, settings=settings)
    try:
        return (await model.ask(HELLO, lambda _: None)).message.text
    finally:
        await model.close()


@each_provider
async def test_an_overloaded_provider_is_asked_again_when_it_says(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=429, retry_after="7"), "at last"])
    still = StillClock(TOTAL)
    assert await ask(kind, stub.url, still=still) == "at last"
    assert still.waits == [7.0]


@each_provider
async def test_a_provider_that_says_at_once_is_not_pressed_all_the_same(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=429, retry_after="0"), "at last"])
    still = StillClock(TOTAL)
    assert await ask(kind, stub.url, still=still) == "at last"
    assert still.waits == [0.5]


@each_provider
async def test_waits_grow_where_the_provider_does_not_say(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=500), HttpError(status=503), HttpError(status=500), "at last"])
    still = StillClock(TOTAL)
    assert await ask(kind, stub.url, still=still) == "at last"
    assert still.waits == [0.5, 1.0, 2.0]


@each_provider
async def test_a_provider_that_stays_broken_is_given_up(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=500)])
    with pytest.raises(ModelUnavailable, match="HTTP 500"):
        await ask(kind, stub.url, settings=ModelSettings(attempts=3))
    assert len(stub.requests) == 3


@each_provider
async def test_a_wait_longer_than_the_time_left_is_not_begun(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=429, retry_after="3600"), "too late"])
    still = StillClock(TOTAL)
    with pytest.raises(ModelUnavailable):
        await ask(kind, stub.url, still=still)
    assert still.waits == []


@each_provider
async def test_a_cut_connection_is_asked_again_and_the_person_is_told(kind: str, serve: Serve) -> None:
    stub = await serve([Cut(said="half a "), "the whole"])
    model = open_at(kind, stub.url)
    shown: list[str] = []
    reply = await model.ask(HELLO, shown.append)
    await model.close()
    assert reply.message.text == "the whole"
    assert "".join(shown) == "half a \n[the connection broke; asking again]\nthe whole"


@each_provider
async def test_attempts_that_broke_off_are_paid_for(kind: str, serve: Serve) -> None:
    stub = await serve([Cut(), "ok"])
    model = open_at(kind, stub.url)
    usage = (await model.ask(HELLO, lambda _: None)).usage
    await model.close()
    assert usage.input_tokens > 100  # what the stub counts for the reply alone


@each_provider
async def test_what_was_paid_for_nothing_is_with_the_error(kind: str, serve: Serve) -> None:
    stub = await serve([Cut()])
    with pytest.raises(ModelUnavailable) as caught:
        await ask(kind, stub.url, settings=ModelSettings(attempts=2))
    assert caught.value.usage is not None
    assert caught.value.usage.input_tokens > 0


@each_provider
async def test_a_stream_that_is_no_json_is_asked_again(kind: str, serve: Serve) -> None:
    stub = await serve([Garbled(), "readable"])
    assert await ask(kind, stub.url) == "readable"


@each_provider_with_text_arguments
async def test_arguments_that_are_no_json_are_never_passed_on(kind: str, serve: Serve) -> None:
    stub = await serve([BrokenCall(tool="look")])
    model = open_at(kind, stub.url, settings=ModelSettings(attempts=2))
    with pytest.raises(ModelUnavailable, match="'look' are no JSON object"):
        await model.ask(Prompt(system="", messages=HELLO.messages, tools=(TOOL,)), lambda _: None)
    await model.close()
    assert len(stub.requests) == 2


@each_provider_with_text_arguments
async def test_arguments_that_are_json_but_no_object_are_never_passed_on(kind: str, serve: Serve) -> None:
    stub = await serve([BrokenCall(tool="look", arguments='["a"]')])
    model = open_at(kind, stub.url, settings=ModelSettings(attempts=1))
    with pytest.raises(ModelUnavailable):
        await model.ask(Prompt(system="", messages=HELLO.messages, tools=(TOOL,)), lambda _: None)
    await model.close()


@each_provider
async def test_an_endless_reply_is_cut_off_and_not_paid_for_twice(kind: str, serve: Serve) -> None:
    stub = await serve([Endless()])
    with pytest.raises(ModelUnavailable, match="does not end"):
        await ask(kind, stub.url, settings=ModelSettings(max_reply_bytes=5_000))
    await stub.left.wait()
    assert len(stub.requests) == 1


@each_provider
async def test_the_time_limit_covers_a_reply_that_hangs(kind: str, serve: Serve) -> None:
    stub = await serve([Hang()])

    class RingsWhenHanging(StillClock):
        async def sleep(self, seconds: float) -> None:
            await stub.hanging.wait()

    with pytest.raises(ModelUnavailable, match="within 600 seconds"):
        await ask(kind, stub.url, still=RingsWhenHanging(TOTAL))
    await stub.left.wait()


@each_provider
async def test_cancelling_closes_the_connection(kind: str, serve: Serve) -> None:
    stub = await serve([Hang()])
    asking = asyncio.create_task(ask(kind, stub.url))
    await stub.hanging.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await stub.left.wait()


@each_provider
async def test_after_a_cancelled_reply_the_same_model_answers(kind: str, serve: Serve) -> None:
    stub = await serve([Hang(), "here"])
    model = open_at(kind, stub.url)
    asking = asyncio.create_task(model.ask(HELLO, lambda _: None))
    await stub.hanging.wait()
    asking.cancel()
    await asyncio.wait([asking])
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
async def test_a_full_context_window_is_said_so_with_the_ways_out(kind: str, serve: Serve) -> None:
    stub = await serve([OVERFLOWS[kind]])
    with pytest.raises(ContextExceeded, match="Context window exceeded") as caught:
        await ask(kind, stub.url)
    assert caught.value.hint is not None
    assert "/compact" in caught.value.hint
    assert "/fork" in caught.value.hint
    assert len(stub.requests) == 1


@each_provider
async def test_a_wrong_key_is_refused_at_once_and_not_repeated(kind: str, serve: Serve) -> None:
    stub = await serve(["never said"])
    wrong = "wrong-key-that-must-not-show"
    model = open_at(kind, stub.url, key=wrong)
    with pytest.raises(ModelRefused, match="refused the key") as caught:
        await model.ask(HELLO, lambda _: None)
    await model.close()
    assert len(stub.requests) == 1
    assert wrong not in f"{caught.value} {caught.value.hint} {model!r}"


@each_provider
async def test_a_message_that_quotes_the_key_is_shown_without_it(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=400, message="the key stub-key may not use this")])
    with pytest.raises(ModelRefused) as caught:
        await ask(kind, stub.url)
    assert "stub-key" not in str(caught.value)


@each_provider
async def test_a_model_that_does_not_exist_is_said_so(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=404, kind="not_found_error", message="model: no-such")])
    with pytest.raises(ModelRefused, match="there is no"):
        await ask(kind, stub.url)


@each_provider
async def test_a_server_that_is_not_there_is_unavailable(kind: str) -> None:
    with pytest.raises(ModelUnavailable):
        await ask(kind, "http://127.0.0.1:9", settings=ModelSettings(attempts=2))


@each_provider
async def test_bytes_may_arrive_split_anywhere(kind: str, serve: Serve) -> None:
    stub = await serve(["Grüße 🪸 aus 北京"], packet=5)
    assert await ask(kind, stub.url) == "Grüße 🪸 aus 北京"


@each_provider
async def test_no_error_chains_the_bodies_of_requests(kind: str, serve: Serve) -> None:
    stub = await serve([HttpError(status=400, message="no")])
    with pytest.raises(ModelError) as caught:
        await ask(kind, stub.url)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
