"""Pictures and documents that are attached to a message reach the provider in its own format."""

import base64
import json
from contextlib import AsyncExitStack
from decimal import Decimal

import pytest
from tests.models.create import WIRE_FORMATS, StartStub, create_at

from holdfast.core import Attachment, UserMessage, digest_bytes
from holdfast.core.events import MessagePosted, SessionTitled
from holdfast.models import Prompt, Reply, ScriptedModel, media_type_of, say, takes_media
from holdfast.session import Settings, attached_file
from holdfast.testing import memory_session

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))
PDF = b"%PDF-1.7 something"


@pytest.mark.parametrize("kind", WIRE_FORMATS)
async def test_a_picture_and_a_pdf_reach_the_provider(
    kind: str, start_stub: StartStub, stack: AsyncExitStack
) -> None:
    stub = await start_stub(["I see."])
    model = create_at(kind, stub.url)
    stack.push_async_callback(model.close)
    contents = {digest_bytes(each): each for each in (PNG, PDF)}
    attachments = tuple(
        Attachment(name="x", media_type=media_type_of(content), digest=digest, size=len(content))
        for digest, content in contents.items()
    )
    message = UserMessage(text="look", attachments=attachments)
    await model.ask(Prompt(system="", messages=(message,), contents=contents), lambda _: None)
    [request] = stub.requests
    body = json.dumps(request.body)
    for content in (PNG, PDF):
        found = (base64.b64encode(content).decode(), base64.urlsafe_b64encode(content).decode())
        assert any(each in body for each in found)


async def test_an_attachment_is_on_record_and_goes_along_with_every_later_request() -> None:
    asked: list[Prompt] = []

    def answer(prompt: Prompt) -> Reply:
        asked.append(prompt)
        return say("Seen.")

    model = ScriptedModel([answer, answer])
    async with memory_session(model=model) as session:
        await session.send("look", files=[attached_file("a.png", "image/png", PNG)])
        await session.send("again")
        posted = next(
            each.event for each in session._journal.recorded if isinstance(each.event, MessagePosted)
        )
    assert posted.attachments == (
        Attachment(
            name="a.png", media_type="image/png", digest=digest_bytes(PNG), size=len(PNG), tokens=1_600
        ),
    )
    assert [each.contents for each in asked] == [{digest_bytes(PNG): PNG}] * 2


def test_a_local_model_takes_no_files() -> None:
    assert not takes_media("local:small.gguf", "image/png")
    assert takes_media("anthropic:any", "application/pdf")
    assert not takes_media("anthropic:any", media_type_of(b"MZ\0"))


async def test_a_title_is_asked_for_beside_the_conversation_recorded_and_charged() -> None:
    asked: list[Prompt] = []

    def answer(prompt: Prompt) -> Reply:
        if "title" not in prompt.system:
            return say("Done.")
        asked.append(prompt)
        return say(' "Fixing the\n parser." ')

    model = ScriptedModel([answer, "Fine."])
    async with memory_session(model=model, settings=Settings(titles="model")) as session:
        await session.send("fix the parser")
        before = session.budget.spent
        assert await session.make_title() == "Fixing the parser"
        assert session.budget.spent.tokens >= before.tokens
        assert session.budget.spent.cost_usd in (None, Decimal(0))
        [titled] = [each.event for each in session._journal.recorded if isinstance(each.event, SessionTitled)]
        assert (titled.title, titled.model) == ("Fixing the parser", model.name)
        await session.send("thanks")
        assert (await session._store.summary(session.id)).title == "Fixing the parser"
    assert "PERSON: fix the parser" in asked[0].messages[0].text  # type: ignore[union-attr]
    assert asked[0].max_tokens == 200
