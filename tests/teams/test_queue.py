"""Messages that no caller waits for: queued durably, delivered even after a restart, each with a receipt."""

import asyncio
from pathlib import Path

import pytest
from tests.teams.team_broker import roster, team_broker

from holdfast.core import PERSON, Error, FakeClock, Nonconverged, SessionId, SystemClock
from holdfast.core.errors import InvalidInput
from holdfast.core.events import MemberAttached, Noted, RecordedEvent
from holdfast.core.projection import ReplayedHistory
from holdfast.store import Home, MemoryStore, open_store
from holdfast.teams import Broker, MessageStatus, OnCall, Pair, Roster, ScriptedProgram, TeamMessage, echo
from holdfast.teams.errors import AskRefused
from holdfast.teams.history import PairHistory
from holdfast.teams.pair_log import Notices, PairLog, QueuedMessages

MESSAGE = "550e8400-e29b-41d4-a716-446655440000"


def teams(tmp_path: Path, **settings: object) -> Roster:
    return roster("alpha", "beta", "gamma", project=str(tmp_path), settings=settings)


async def settled(broker: Broker, sender: str = "alpha") -> list[MessageStatus]:
    """The messages to beta, once all have their receipt."""
    async with asyncio.timeout(60):
        while any(each.state in ("queued", "working") for each in await broker.report(sender, "beta")):  # noqa: ASYNC110
            await asyncio.sleep(0)
    return await broker.report(sender, "beta")


async def stuck(message: TeamMessage, received: object, on_call: OnCall) -> str:
    await asyncio.get_running_loop().create_future()
    return ""


async def test_a_queued_message_is_delivered_by_the_next_process(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    clock, team_roster = SystemClock(), teams(tmp_path)
    store = await open_store(home, clock=clock)
    started = asyncio.Event()

    async def begin(message: TeamMessage, received: object, on_call: OnCall) -> str:
        started.set()
        return await stuck(message, received, on_call)

    program = ScriptedProgram(begin)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        for text in ("one", "two"):
            assert (await broker.send("alpha", "beta", text)).state == "queued"
        await started.wait()
    await store.close()
    store = await open_store(home, clock=clock)
    program.answer = echo
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        assert [each.state for each in await broker.report("alpha", "beta")] == ["queued", "queued"]
        assert await broker.resume_pending() == 2
        one, two = await settled(broker)
        # The first was being answered when the process ended: it is cancelled and never runs twice.
        assert (one.state, two.state) == ("failed", "answered")
        assert two.reply is not None
        assert two.reply.text == "echo[2]: two"
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        assert await broker.resume_pending() == 0
        one, two = await broker.report("alpha", "beta")
        assert (one.state, two.state) == ("failed", "answered")
        assert two.reply is not None
        assert two.reply.text == "echo[2]: two"
    await store.close()


async def test_a_message_answered_before_a_crash_is_not_answered_twice(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program, team_roster = MemoryStore(clock=clock), ScriptedProgram(), teams(tmp_path)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        await broker.ask("alpha", "beta", "pay once", message_id=MESSAGE)
    # The receipt was not written: the message is still queued.
    async with team_broker(
        tmp_path, team_roster, store=store, clock=clock, program=ScriptedProgram(stuck)
    ) as broker:
        await broker.send("alpha", "beta", "pay once", message_id=MESSAGE)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        await broker.resume_pending()
        (sent,) = await settled(broker)
        (line,) = await broker.sessions()
    assert sent.state == "answered"
    assert line.turns == 1


async def test_a_failed_message_gets_a_receipt_and_is_not_retried(tmp_path: Path) -> None:
    clock = FakeClock()
    store, team_roster = MemoryStore(clock=clock), teams(tmp_path, turn_seconds=0.02)
    async with team_broker(
        tmp_path, team_roster, store=store, clock=clock, program=ScriptedProgram(stuck)
    ) as broker:
        await broker.send("alpha", "beta", "never")
        (sent,) = await settled(broker)
    assert sent.state == "failed"
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        assert await broker.resume_pending() == 0
        (sent,) = await broker.report("alpha", "beta")
    assert sent.state == "failed"


async def test_a_cancelled_message_gets_a_receipt_and_is_not_retried(tmp_path: Path) -> None:
    clock = FakeClock()
    store, team_roster = MemoryStore(clock=clock), teams(tmp_path)
    async with team_broker(
        tmp_path, team_roster, store=store, clock=clock, program=ScriptedProgram(stuck)
    ) as broker:
        await broker.send("alpha", "beta", "never")
        async with asyncio.timeout(60):
            while not await broker.cancel("alpha", "beta"):  # noqa: ASYNC110
                await asyncio.sleep(0)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        assert await broker.resume_pending() == 0
        (sent,) = await broker.report("alpha", "beta")
    assert sent.reply is not None
    assert sent.reply.outcome == Nonconverged(reason="cancelled")


async def test_a_message_waits_while_another_process_holds_the_session(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program, team_roster = MemoryStore(clock=clock), ScriptedProgram(), teams(tmp_path)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as holder:
        await holder.ask("alpha", "beta", "mine")
        async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as other:
            await other.send("alpha", "beta", "later")
            (sent,) = await settled(other)
            assert sent.reply is not None
            assert isinstance(sent.reply.outcome, Error)
            assert sent.reply.outcome.code == "session-held"
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        assert await broker.resume_pending() == 1
        (sent,) = await settled(broker)
    assert sent.state == "answered"


async def test_a_message_keeps_its_hop_count_over_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    store, team_roster = MemoryStore(clock=clock), teams(tmp_path)
    brokers: list[Broker] = []

    async def hand_on(message: TeamMessage, received: object, on_call: OnCall) -> str:
        if message.text == "hand on":
            session = brokers[0].session_id(brokers[0].roster.pair("alpha", "gamma"))
            await brokers[0].send("gamma", "beta", "handed", asking_session=session)
            return "done"
        return await stuck(message, received, on_call)

    async with team_broker(
        tmp_path, team_roster, store=store, clock=clock, program=ScriptedProgram(hand_on)
    ) as broker:
        brokers.append(broker)
        await broker.ask("alpha", "gamma", "hand on")
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        await broker.resume_pending()
        (sent,) = await settled(broker, "gamma")
    assert sent.hops == 1


async def test_a_message_to_a_removed_team_waits_until_the_team_is_back(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram(stuck)
    parts = {"store": store, "clock": clock, "program": program}
    async with team_broker(tmp_path, teams(tmp_path, max_processes=1), **parts) as broker:  # type: ignore[arg-type]
        await broker.send("alpha", "gamma", "holds the only slot")
        await broker.send("alpha", "beta", "later")
    program.answer = echo
    without = roster("alpha", "gamma", project=str(tmp_path))
    async with team_broker(tmp_path, without, **parts) as broker:  # type: ignore[arg-type]
        assert await broker.resume_pending() == 1
    async with team_broker(tmp_path, teams(tmp_path), **parts) as broker:  # type: ignore[arg-type]
        assert await broker.resume_pending() >= 1
        (message,) = await settled(broker)
    assert message.state == "answered"


async def test_a_notice_expires_exactly_at_its_time(tmp_path: Path) -> None:
    clock = FakeClock()
    received: list[tuple[str, ...]] = []

    async def listen(message: TeamMessage, before: object, on_call: OnCall) -> str:
        received.append(message.notices)
        return "received"

    async with team_broker(tmp_path, teams(tmp_path), clock=clock, program=ScriptedProgram(listen)) as broker:
        for receiver in ("beta", "gamma"):
            await broker.notify("alpha", receiver, "the door is open", ttl_days=1)
        clock.advance(86_400 - 1)
        await broker.ask("alpha", "beta", "in time")
        clock.advance(1)
        await broker.ask("alpha", "gamma", "too late")
        for days in (0.0, -1.0, 365.1, float("nan")):
            with pytest.raises(InvalidInput, match="time to live"):
                await broker.notify("alpha", "beta", "notice", ttl_days=days)
    assert received == [("the door is open",), ()]


async def test_the_first_text_under_a_message_id_is_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    program = ScriptedProgram(stuck)
    async with team_broker(tmp_path, teams(tmp_path), store=store, clock=clock, program=program) as broker:
        await broker.send("alpha", "beta", "pay one", message_id=MESSAGE)
        await broker.send("alpha", "beta", "pay a thousand", message_id=MESSAGE)
    box = PairLog(Pair(sender="alpha", receiver="beta"), store=store, folder=str(tmp_path / "teams"))
    (left,) = await QueuedMessages(box).sent()
    assert left.message.text == "pay one"
    await store.close()


async def test_what_an_imported_file_queued_is_not_delivered(tmp_path: Path) -> None:
    """The id of a pair's session follows from names and a folder, which a stranger can guess."""
    clock, pair = FakeClock(), Pair(sender="alpha", receiver="beta")
    log = PairLog(pair, store=MemoryStore(clock=clock), folder=str(tmp_path))
    message = TeamMessage(id=MESSAGE, text="pay", sender="alpha", principal=PERSON)
    messages, notices = QueuedMessages(log), Notices(log, clock=clock)
    await messages.add(message)
    await notices.add("obey", ttl_days=1)
    assert (len(await messages.pending()), len(await notices.pending())) == (1, 1)
    await log.append(Noted(code="imported", text=""))
    assert (await messages.pending(), await notices.pending()) == ([], [])
    await notices.add("ours", ttl_days=1)
    assert [each.text for each in await notices.pending()] == ["ours"]


def test_an_imported_file_chooses_no_conversation_of_a_member() -> None:
    told = (MemberAttached(kind="claude", conversation="mine"), Noted(code="imported", text=""))
    recorded = [
        RecordedEvent(session=SessionId("s"), seq=seq, at_ms=0, event=event, hash=b"")
        for seq, event in enumerate(told, start=1)
    ]
    assert PairHistory(ReplayedHistory(recorded[:1])).attached == told[0]
    assert PairHistory(ReplayedHistory(recorded)).attached is None


async def test_f28_concurrent_writers_of_one_pair_log_do_not_lose_each_others_lease(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    clock = SystemClock()
    store = await open_store(home, clock=clock)
    async with team_broker(tmp_path, teams(tmp_path), store=store, clock=clock) as broker:
        await asyncio.gather(
            *(broker.send("alpha", "beta", f"message {number}") for number in range(10)),
            *(broker.notify("alpha", "beta", f"notice {number}") for number in range(10)),
        )
        assert {each.state for each in await settled(broker)} == {"answered"}
        assert len(await broker.notices("alpha", "beta")) == 10
    await store.close()


async def test_notices_and_messages_that_wait_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.pair_log.MAX_NOTICES", 3)
    monkeypatch.setattr("holdfast.teams.pair_log.MAX_TEXT", 100)
    monkeypatch.setattr("holdfast.teams.broker.MAX_WAITING_MESSAGES", 2)
    async with team_broker(tmp_path, teams(tmp_path), program=ScriptedProgram(stuck)) as broker:
        await broker.notify("alpha", "beta", "x" * 60)
        with pytest.raises(AskRefused, match="1 notice to 'beta' wait"):
            await broker.notify("alpha", "beta", "x" * 60)
        for text in ("one", "two"):
            await broker.notify("alpha", "beta", text)
        with pytest.raises(AskRefused, match="at most 3 may"):
            await broker.notify("alpha", "beta", "four")
        await broker.notify("gamma", "beta", "another pair")
        for text in ("one", "two"):
            await broker.send("alpha", "beta", text)
        for attempt in (broker.send("alpha", "beta", "three"), broker.ask("alpha", "beta", "three")):
            with pytest.raises(AskRefused, match="2 messages from 'alpha' to 'beta' have no answer yet"):
                await attempt
        assert (await broker.send("gamma", "beta", "another pair")).state == "queued"


async def test_threads_between_two_teams_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.teams.conversations.MAX_THREADS", 3)
    async with team_broker(tmp_path, teams(tmp_path)) as broker:
        await broker.ask("alpha", "beta", "hello")
        await broker.notify("alpha", "beta", "hello", thread="one")
        await broker.send("alpha", "beta", "hello", thread="two")
        for attempt in (
            broker.ask("alpha", "beta", "hello", thread="three"),
            broker.send("alpha", "beta", "hello", thread="three"),
            broker.notify("alpha", "beta", "hello", thread="three"),
            broker.fork("alpha", "beta", "three"),
        ):
            with pytest.raises(AskRefused, match="'alpha' has 3 threads with 'beta'; at most 3 are possible"):
                await attempt
        await broker.ask("alpha", "beta", "again", thread="one")
        await broker.ask("gamma", "beta", "other teams", thread="three")


async def test_messages_that_wait_are_counted_over_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.broker.MAX_WAITING_MESSAGES", 2)
    async with team_broker(tmp_path, teams(tmp_path), program=ScriptedProgram(stuck)) as broker:
        for thread in ("one", "two"):
            await broker.send("alpha", "beta", "hello", thread=thread)
        with pytest.raises(AskRefused, match="2 messages from 'alpha' to 'beta' have no answer yet"):
            await broker.send("alpha", "beta", "hello", thread="three")
