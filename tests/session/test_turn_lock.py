"""Messages during an open turn: refused, or admitted one after the other in order."""

import asyncio

import pytest

from holdfast.core import Escalation, Needs, Nonconverged, Ok, Response
from holdfast.core.errors import SessionIsClosed, SessionNotReady
from holdfast.guests import script
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session
from holdfast.testing import memory_session

ASKS = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
WRITE = use(
    "execute_code",
    {"code": script({"call": "world.write", "arguments": {"path": "a.txt", "content": "new"}})},
)


class Person:
    """Is asked, and answers when the test says so."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()

    async def __call__(self, escalation: Escalation) -> Response:
        self.asked.set()
        await self.answers.wait()
        return Response(verdict="approve")


async def queued(session: Session, *texts: str) -> list[asyncio.Task[object]]:
    tasks: list[asyncio.Task[object]] = []
    for text in texts:
        tasks.append(asyncio.create_task(session.send(text, queue=True)))
        await asyncio.sleep(0)
    return tasks


class SlowSummaryModel(ScriptedModel):
    """Says that it was asked for a summary, and gives it when the test says so."""

    def __init__(self, replies: list[ScriptedReply]) -> None:
        super().__init__(replies)
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        if not prompt.system.startswith("Summarize"):
            return await super().ask(prompt, on_piece)
        self.asked.set()
        await self.answers.wait()
        return say("a summary")


async def test_queued_messages_become_turns_in_order() -> None:
    async with memory_session([WRITE, "one.", "two.", "three."], policy=ASKS) as session:
        session.approver = person = Person()
        first = asyncio.create_task(session.send("first"))
        await person.asked.wait()
        others = await queued(session, "second", "third")
        assert [turn.asked for turn in session.history()] == ["first"], "nothing of it is on record yet"
        person.answers.set()
        assert await first == Ok(value="one.")
        assert await asyncio.gather(*others) == [Ok(value="two."), Ok(value="three.")]
        assert [(turn.number, turn.asked) for turn in session.history()] == [
            (1, "first"),
            (2, "second"),
            (3, "third"),
        ]


async def test_a_message_without_queue_cannot_overtake_queued_ones() -> None:
    async with memory_session([WRITE, "one."], policy=ASKS) as session:
        await session.send("first")
        [second] = await queued(session, "second")
        await session.cancel()  # the second is called and has not come in yet
        with pytest.raises(SessionNotReady, match="other messages are waiting"):
            await session.send("in between")
        assert await second == Ok(value="one.")


async def test_a_queued_message_also_waits_for_a_turn_that_waits_for_a_person() -> None:
    async with memory_session([WRITE, "one.", "two."], policy=ASKS) as session:
        assert isinstance(await session.send("first"), Needs)
        [second] = await queued(session, "second")
        [escalation] = session.escalations()
        await session.resolve(escalation.id, Response(verdict="approve"))
        assert await session.advance() == Ok(value="one.")
        assert await second == Ok(value="two.")


async def test_a_cancelled_waiter_does_not_block_others() -> None:
    async with memory_session([WRITE, "one.", "two."], policy=ASKS) as session:
        session.approver = person = Person()
        first = asyncio.create_task(session.send("first"))
        await person.asked.wait()
        second, third = await queued(session, "second", "third")
        second.cancel()
        person.answers.set()
        await first
        assert await third == Ok(value="two.")
        with pytest.raises(asyncio.CancelledError):
            await second


async def test_a_waiter_cancelled_while_being_woken_does_not_block_others() -> None:
    async with memory_session([WRITE, "one."], policy=ASKS) as session:
        await session.send("first")
        second, third = await queued(session, "second", "third")
        await session.cancel()
        second.cancel()
        assert await third == Ok(value="one.")


async def test_closing_rejects_queued_messages() -> None:
    async with memory_session([WRITE], policy=ASKS) as session:
        await session.send("first")
        others = await queued(session, "second", "third")
        await session.close()
        for other in others:
            with pytest.raises(SessionIsClosed):
                await other
        assert len(session.history()) == 1


async def test_a_turn_that_waits_for_a_person_can_be_cancelled() -> None:
    async with memory_session([WRITE, "one."], policy=ASKS) as session:
        await session.send("first")
        [second] = await queued(session, "second")
        await session.cancel()
        assert session.history()[0].outcome == Nonconverged(reason="cancelled")
        assert session.escalations() == ()
        assert await second == Ok(value="one.")


async def test_no_message_interrupts_a_compaction() -> None:
    model = SlowSummaryModel(["one.", "two.", "three."])
    async with memory_session(model=model) as session:
        for text in ("a", "b", "c"):
            await session.send(text)
        compacting = asyncio.create_task(session.compact())
        await model.asked.wait()
        with pytest.raises(SessionNotReady):
            await session.send("d")
        model.answers.set()
        assert await compacting == "a summary"
