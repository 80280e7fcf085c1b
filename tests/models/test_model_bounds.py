"""What a model server sends is bounded while it arrives."""

import gzip

import pytest
from tests.models.create import WIRE_FORMATS, StartStub, create_at
from tests.support.provider_stub import Raw

from holdfast.core import UserMessage
from holdfast.core.errors import ModelUnavailable
from holdfast.models import ModelSettings, Prompt

HELLO = Prompt(system="Be brief.", messages=(UserMessage(text="hello"),))
SETTINGS = ModelSettings(max_reply_bytes=100_000, max_attempts=1)


@pytest.mark.parametrize("kind", WIRE_FORMATS)
@pytest.mark.parametrize("start", [b"data: ", b"", b"\n\ndata: "])
async def test_f50_a_line_without_end_is_cut_off_while_it_arrives(
    kind: str, start: bytes, start_stub: StartStub
) -> None:
    stub = await start_stub([Raw(content=start + b"x" * 5_000_000)])
    model = create_at(kind, stub.url, settings=SETTINGS)
    with pytest.raises(ModelUnavailable, match="longer than max_reply_bytes"):
        await model.ask(HELLO, lambda _: None)
    await model.close()


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_f50_a_reply_of_many_short_lines_is_read(kind: str, start_stub: StartStub) -> None:
    settings = ModelSettings(max_reply_bytes=20_000, max_attempts=1)
    stub = await start_stub(["word " * 2_000])  # some 300 kB of events
    model = create_at(kind, stub.url, settings=settings)
    assert len((await model.ask(HELLO, lambda _: None)).message.text) >= 9_999
    await model.close()


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_f50_a_compressed_body_is_not_expanded(kind: str, start_stub: StartStub) -> None:
    stub = await start_stub([Raw(content=gzip.compress(b"data: " + b"x" * 5_000_000))])
    model = create_at(kind, stub.url, settings=SETTINGS)
    with pytest.raises(ModelUnavailable):
        await model.ask(HELLO, lambda _: None)
    assert stub.requests
    await model.close()


def _chat_reply(prompt_tokens: str) -> bytes:
    head = '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":['
    chunks = (
        head + '{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}',
        head + '{"index":0,"delta":{},"finish_reason":"stop"}]}',
        head + f'],"usage":{{"prompt_tokens":{prompt_tokens},"completion_tokens":1,"total_tokens":2}}}}',
        "[DONE]",
    )
    return "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings", "ignore:Failed to extract usage")
@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        ("7", 7),
        ("1.5", None),
        ("1e308", None),
        ("1e400", None),
        ("-5", None),
        ("1" * 30, None),
        ('7,"prompt_tokens_details":{"cached_tokens":9}', None),  # more from the cache than there was
    ],
)
async def test_f50_tokens_that_cannot_be_counted_are_estimated(
    reported: str, counted: int | None, start_stub: StartStub
) -> None:
    stub = await start_stub([Raw(content=_chat_reply(reported))])
    model = create_at("openai-chat", stub.url, settings=SETTINGS)
    usage = (await model.ask(HELLO, lambda _: None)).usage
    await model.close()
    assert isinstance(usage.input_tokens, int)
    assert usage.input_tokens == (counted or HELLO.size_bytes // 4)
    assert usage.cost_usd is not None
    assert usage.cost_usd < 1
