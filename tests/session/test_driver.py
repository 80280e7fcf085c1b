"""The turn driver: what was left open is finished first, then the message is sent."""

from tests.session.test_session import READ, WRITE, world

from holdfast.core import Limits, Needs, Nonconverged, Ok, Response
from holdfast.core.events import MessagePosted, RecordedEvent
from holdfast.models import say, use
from holdfast.policy import FixedPolicy
from holdfast.session import TurnDriver
from holdfast.testing import memory_session


async def test_without_a_message_and_an_open_turn_there_is_nothing_to_do() -> None:
    async with memory_session() as session:
        assert await TurnDriver(session, transport="test").run(None) is None
        assert session.history() == ()


async def test_a_message_is_sent_under_the_transport() -> None:
    posted: list[str] = []

    def note(entry: RecordedEvent) -> None:
        if isinstance(entry.event, MessagePosted):
            posted.append(entry.event.transport)

    async with memory_session(["Hello."]) as session:
        session.follow(note)
        assert await TurnDriver(session, transport="web").run("Hi") == Ok(value="Hello.")
        assert posted == ["web"]


async def test_a_turn_whose_budget_was_raised_is_finished_before_the_message_is_sent() -> None:
    notices: list[str] = []
    replies = [READ, say("read"), say("second")]
    async with memory_session(replies, world=world(a_txt="x"), limits=Limits(steps=1)) as session:
        driver = TurnDriver(session, transport="test", notify=notices.append)
        assert isinstance(await driver.run("first"), Nonconverged)
        assert notices == []
        await session.raise_budget(Limits(steps=10))
        assert driver.has_unfinished_turn
        assert await driver.run("more") == Ok(value="second")
        assert [turn.outcome for turn in session.history()] == [Ok(value="read"), Ok(value="second")]
    assert notices == ["the budget was raised; resuming the last turn"]


async def test_the_turn_continues_while_pending_escalations_are_answered() -> None:
    async with memory_session([WRITE, WRITE, "done"], policy=FixedPolicy(default="escalate")) as session:

        async def approve() -> bool:
            waiting = session.escalations()
            for escalation in waiting:
                await session.resolve(escalation.id, Response(verdict="approve"))
            return bool(waiting)

        assert await TurnDriver(session, transport="test", answer_pending=approve).run("go") == Ok(
            value="done"
        )


async def test_without_an_answer_the_turn_waits() -> None:
    async with memory_session(
        [use("world__write", {"path": "a", "content": "b"})], policy=FixedPolicy(default="escalate")
    ) as session:
        driver = TurnDriver(session, transport="test")
        assert isinstance(await driver.run("go"), Needs)
        assert driver.has_unfinished_turn
