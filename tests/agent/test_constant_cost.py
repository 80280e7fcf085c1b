"""The cost of a turn does not grow with the conversation: counted in function calls, not in seconds."""

import sys
from types import FrameType

import pytest

from holdfast.core import PERSON, Limits, ModelMessage, Ok, TextPart, Usage, UserMessage
from holdfast.core.events import MessagePosted, ModelReplied, TurnEnded
from holdfast.models import OnPiece, Prompt, Reply, say, use
from holdfast.session import Session, Settings
from holdfast.testing import memory_session


class InstantModel:
    """Asks for one tool, then answers; looks only at the last message."""

    name = "scripted:instant"
    context_tokens = None

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        is_asked = isinstance(prompt.messages[-1], UserMessage)
        return use("world__exists", {"path": "a.txt"}) if is_asked else say("done")

    async def close(self) -> None:
        """Nothing is held."""


async def fill(session: Session, turns: int) -> None:
    reply = ModelMessage(parts=(TextPart(text="hi"),))
    for turn in range(1, turns + 1):
        await session._journal.append(
            MessagePosted(turn=turn, text="hello", principal=PERSON),
            ModelReplied(turn=turn, step=1, model="m", message=reply, usage=Usage(input_tokens=1)),
            TurnEnded(turn=turn, outcome=Ok()),
        )


async def calls_of_a_turn(turns_before: int, limit: int | None, tokens: int | None) -> int:
    settings = Settings(acts_with="tools", max_history_messages=limit)
    limits = Limits(tokens=tokens)
    async with memory_session(model=InstantModel(), settings=settings, limits=limits) as session:
        await fill(session, turns_before)
        await session.send("the first estimate of what a prompt costs reads all of it")
        count = 0

        def watch(frame: FrameType, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(watch)
        try:
            outcome = await session.send("go on")
        finally:
            sys.setprofile(None)
        assert outcome == Ok(value="done")
        return count


@pytest.mark.parametrize("limit", [None, 6])
@pytest.mark.parametrize("tokens", [None, 10**9])
async def test_a_turn_makes_as_many_calls_after_a_thousand_turns_as_after_ten(
    limit: int | None, tokens: int | None
) -> None:
    after_ten = await calls_of_a_turn(10, limit, tokens)
    assert await calls_of_a_turn(1000, limit, tokens) <= after_ten * 1.02
