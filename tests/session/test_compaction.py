"""Compaction: a recorded summary, the originals kept, no call separated from its return, its cost counted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import (
    Error,
    Message,
    ModelMessage,
    Nonconverged,
    Ok,
    ToolMessage,
    UserMessage,
)
from holdfast.core.errors import ContextExceeded, InvalidInput, ModelUnavailable
from holdfast.core.events import HistoryCompacted, MessagePosted
from holdfast.guests import ScriptedEngine, script
from holdfast.models import OnPiece, Prompt, Reply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Settings
from holdfast.testing import memory_session


class SummarizingModel:
    """A model that uses a tool once a turn, writes a summary when asked for one, and has a small context."""

    name = "scripted:talker"
    context_tokens = None

    def __init__(self, window: int = 10_000) -> None:
        self._window = window
        self.heard: list[Prompt] = []
        self.is_down = False
        """Whether it fails after the tool was used."""

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        if prompt.system.startswith("Summarize"):
            return say("they counted to three")
        if len(prompt.messages) > self._window:
            raise ContextExceeded("too long")
        self.heard.append(prompt)
        if self.is_down and isinstance(prompt.messages[-1], ToolMessage):
            raise ModelUnavailable("down")
        if isinstance(prompt.messages[-1], UserMessage):
            part = use("execute_code", {"code": script({"value": len(self.heard)})})
            call = part.message.tool_calls[0]
            named = type(call)(id=f"c{len(self.heard)}", tool=call.tool, arguments=call.arguments)
            return Reply(message=ModelMessage(parts=(named,)), usage=part.usage, finish="tool-calls")
        return say(f"answer {len(self.heard)}")

    async def close(self) -> None:
        """Nothing is held."""


def check_whole(messages: Sequence[Message]) -> None:
    """Every call has its return right behind it, and every return its call before it."""
    for number, message in enumerate(messages):
        if isinstance(message, ModelMessage) and message.tool_calls:
            after = messages[number + 1]
            assert isinstance(after, ToolMessage)
            assert [each.id for each in after.returns] == [part.id for part in message.tool_calls]
        if isinstance(message, ToolMessage):
            assert isinstance(messages[number - 1], ModelMessage)


async def test_a_summary_replaces_older_turns_and_the_originals_stay() -> None:
    model = SummarizingModel()
    async with memory_session(model=model) as session:
        for text in ("one", "two", "three", "four"):
            assert isinstance(await session.send(text), Ok)
        assert await session.compact(keep_turns=2) == "they counted to three"
        assert isinstance(await session.send("five"), Ok)
        posted = [e.event.text for e in session._journal.recorded if isinstance(e.event, MessagePosted)]
        assert posted == ["one", "two", "three", "four", "five"]
    given = model.heard[-2].messages
    assert isinstance(given[0], UserMessage)
    assert "they counted to three" in given[0].text
    words = [message.text for message in given[1:] if isinstance(message, UserMessage)]
    assert words == ["three", "four", "five"]
    check_whole(given)


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_w12_after_a_summary_and_a_failed_turn_the_conversation_continues_whole(
    tmp_path: Path, is_resumed: bool
) -> None:
    """W9: a resumed session sends its history. W11: the model sees what the tools of a failed turn did."""
    model = SummarizingModel()
    runtime = await Runtime.start(home=tmp_path, settings=Settings(), servers=())
    try:
        session = await runtime.create(
            model=model, policy=FixedPolicy(default="allow"), sandbox=ScriptedEngine()
        )
        for text in ("one", "two", "three"):
            assert isinstance(await session.send(text), Ok)
        await session.compact(keep_turns=1)
        model.is_down = True
        assert isinstance(await session.send("four"), Error)
        model.is_down = False
        if is_resumed:
            await session.close()
            session = await runtime.resume(
                session.id, model=model, policy=FixedPolicy(default="allow"), sandbox=ScriptedEngine()
            )
        assert isinstance(await session.send("five"), Ok)
    finally:
        await runtime.close()
    given = model.heard[-2].messages
    check_whole(given)
    words = [message.text for message in given if isinstance(message, UserMessage)]
    assert "they counted to three" in words[0]
    assert words[1:] == ["three", "four", "five"]
    assert sum(isinstance(message, ToolMessage) for message in given) == 2, "of the turns three and four"


async def test_compaction_needs_older_turns() -> None:
    async with memory_session(model=SummarizingModel()) as session:
        await session.send("one")
        with pytest.raises(InvalidInput):
            await session.compact(keep_turns=2)


async def test_a_full_context_ends_the_turn_and_suggests_what_to_do() -> None:
    async with memory_session(model=SummarizingModel(window=6)) as session:
        await session.send("one")
        await session.send("two")
        outcome = await session.send("three")
        assert isinstance(outcome, Error)
        assert outcome.message.startswith("Context window exceeded")
        assert outcome.hint is not None
        assert all(word in outcome.hint for word in ("/compact", "/fork", "new session"))
        assert session.status.activity == "ready"


async def test_with_auto_compact_a_full_context_is_summarized_and_the_turn_continues() -> None:
    async with memory_session(
        model=SummarizingModel(window=6), settings=Settings(auto_compact=True)
    ) as session:
        for text in ("one", "two", "three", "four"):
            outcome = await session.send(text)
            assert isinstance(outcome, Ok), outcome
        compactions = [e for e in session._journal.recorded if isinstance(e.event, HistoryCompacted)]
        assert compactions


@pytest.mark.parametrize("limit", range(1, 14))
async def test_a_limit_on_messages_separates_no_call_from_its_return(limit: int) -> None:
    model = SummarizingModel()
    async with memory_session(model=model, settings=Settings(max_history_messages=limit)) as session:
        for text in ("one", "two", "three"):
            assert not isinstance(await session.send(text), Error | Nonconverged)
    for prompt in model.heard:
        assert isinstance(prompt.messages[0], UserMessage)
        check_whole(prompt.messages)
