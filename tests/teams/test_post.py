"""Letters that nobody waits for: taken in durably, delivered also after a restart, each with a receipt."""

import asyncio
from pathlib import Path

import pytest
from tests.teams.companies import company, roster

from holdfast.core import Error, FakeClock, Nonconverged, SystemClock
from holdfast.core.errors import InvalidInput
from holdfast.store import Home, MemoryStore, open_store
from holdfast.teams import Broker, MessageStatus, OnCall, Pair, Roster, ScriptedProgram, TeamMessage, echo
from holdfast.teams.pair_log import PairLog, QueuedMessages

MESSAGE = "550e8400-e29b-41d4-a716-446655440000"


def teams(tmp_path: Path, **settings: object) -> Roster:
    return roster("alpha", "beta", "gamma", project=str(tmp_path), settings=settings)


async def settled(board: Broker, sender: str = "alpha") -> list[MessageStatus]:
    """The letters to beta once all have their receipt."""
    async with asyncio.timeout(50):
        while any(each.state in ("queued", "working") for each in await board.report(sender, "beta")):  # noqa: ASYNC110
            await asyncio.sleep(0)
    return await board.report(sender, "beta")


async def stuck(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
    await asyncio.get_running_loop().create_future()
    return ""


async def test_a_letter_that_was_acknowledged_is_delivered_by_the_next_process(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    clock, on = SystemClock(), teams(tmp_path)
    store = await open_store(home, clock=clock)
    begun = asyncio.Event()

    async def begin(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        begun.set()
        return await stuck(letter, heard, on_call)

    program = ScriptedProgram(begin)
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        for text in ("one", "two"):
            assert (await board.send("alpha", "beta", text)).state == "queued"
        await begun.wait()
    await store.close()
    store = await open_store(home, clock=clock)
    program.answer = echo
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        assert [each.state for each in await board.report("alpha", "beta")] == ["queued", "queued"]
        assert await board.take_up() == 2
        one, two = await settled(board)
        # The first was being answered when the process ended: it is cancelled, and never done twice.
        assert (one.state, two.state) == ("failed", "answered")
        assert two.reply is not None
        assert two.reply.text == "echo[2]: two"
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        assert await board.take_up() == 0
        one, two = await board.report("alpha", "beta")
        assert (one.state, two.state) == ("failed", "answered")
        assert two.reply is not None
        assert two.reply.text == "echo[2]: two"
    await store.close()


async def test_a_letter_answered_before_the_crash_is_not_answered_twice(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program, on = MemoryStore(clock=clock), ScriptedProgram(), teams(tmp_path)
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        await board.ask("alpha", "beta", "pay once", message=MESSAGE)
    # The receipt was not written: the letter still lies in the outbox.
    async with company(tmp_path, on, store=store, clock=clock, program=ScriptedProgram(stuck)) as board:
        await board.send("alpha", "beta", "pay once", message=MESSAGE)
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        await board.take_up()
        (sent,) = await settled(board)
        (line,) = await board.sessions()
    assert sent.state == "answered"
    assert line.turns == 1


async def test_a_failure_has_a_receipt_too_and_is_not_tried_again(tmp_path: Path) -> None:
    clock = FakeClock()
    store, on = MemoryStore(clock=clock), teams(tmp_path, turn_seconds=0.02)
    async with company(tmp_path, on, store=store, clock=clock, program=ScriptedProgram(stuck)) as board:
        await board.send("alpha", "beta", "never")
        (sent,) = await settled(board)
    assert sent.state == "failed"
    async with company(tmp_path, on, store=store, clock=clock) as board:
        assert await board.take_up() == 0
        (sent,) = await board.report("alpha", "beta")
    assert sent.state == "failed"


async def test_a_letter_an_operator_called_off_has_a_receipt_and_is_not_tried_again(tmp_path: Path) -> None:
    clock = FakeClock()
    store, on = MemoryStore(clock=clock), teams(tmp_path)
    async with company(tmp_path, on, store=store, clock=clock, program=ScriptedProgram(stuck)) as board:
        await board.send("alpha", "beta", "never")
        async with asyncio.timeout(50):
            while not await board.cancel("alpha", "beta"):  # noqa: ASYNC110
                await asyncio.sleep(0)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        assert await board.take_up() == 0
        (sent,) = await board.report("alpha", "beta")
    assert sent.reply is not None
    assert sent.reply.outcome == Nonconverged(reason="cancelled")


async def test_while_another_process_holds_the_session_a_letter_waits(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program, on = MemoryStore(clock=clock), ScriptedProgram(), teams(tmp_path)
    async with company(tmp_path, on, store=store, clock=clock, program=program) as holder:
        await holder.ask("alpha", "beta", "mine")
        async with company(tmp_path, on, store=store, clock=clock, program=program) as other:
            await other.send("alpha", "beta", "later")
            (sent,) = await settled(other)
            assert sent.reply is not None
            assert isinstance(sent.reply.outcome, Error)
            assert sent.reply.outcome.code == "session-held"
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        assert await board.take_up() == 1
        (sent,) = await settled(board)
    assert sent.state == "answered"


async def test_a_letter_keeps_its_count_of_hops_over_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    store, on = MemoryStore(clock=clock), teams(tmp_path)
    boards: list[Broker] = []

    async def hand_on(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        if letter.text == "hand on":
            within = boards[0].key(boards[0].roster.pair("alpha", "gamma"))
            await boards[0].send("gamma", "beta", "handed", within=within)
            return "done"
        return await stuck(letter, heard, on_call)

    async with company(tmp_path, on, store=store, clock=clock, program=ScriptedProgram(hand_on)) as board:
        boards.append(board)
        await board.ask("alpha", "gamma", "hand on")
    async with company(tmp_path, on, store=store, clock=clock) as board:
        await board.take_up()
        (sent,) = await settled(board, "gamma")
    assert sent.hops == 1


async def test_a_letter_to_a_team_that_has_left_the_roster_waits_until_it_is_back(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram(stuck)
    parts = {"store": store, "clock": clock, "program": program}
    async with company(tmp_path, teams(tmp_path, max_processes=1), **parts) as board:  # type: ignore[arg-type]
        await board.send("alpha", "gamma", "holds the only place")
        await board.send("alpha", "beta", "later")
    program.answer = echo
    without = roster("alpha", "gamma", project=str(tmp_path))
    async with company(tmp_path, without, **parts) as board:  # type: ignore[arg-type]
        assert await board.take_up() == 1
    async with company(tmp_path, teams(tmp_path), **parts) as board:  # type: ignore[arg-type]
        assert await board.take_up() >= 1
        (letter,) = await settled(board)
    assert letter.state == "answered"


async def test_word_that_was_left_is_too_old_after_its_time_and_no_sooner(tmp_path: Path) -> None:
    clock = FakeClock()
    heard: list[tuple[str, ...]] = []

    async def listen(letter: TeamMessage, before: object, on_call: OnCall) -> str:
        heard.append(letter.notices)
        return "heard"

    async with company(tmp_path, teams(tmp_path), clock=clock, program=ScriptedProgram(listen)) as board:
        for receiver in ("beta", "gamma"):
            await board.notify("alpha", receiver, "the door is open", ttl_days=1)
        clock.advance(86_400 - 1)
        await board.ask("alpha", "beta", "in time")
        clock.advance(1)
        await board.ask("alpha", "gamma", "too late")
        for days in (0.0, -1.0, 365.1, float("nan")):
            with pytest.raises(InvalidInput, match="time to live"):
                await board.notify("alpha", "beta", "word", ttl_days=days)
    assert heard == [("the door is open",), ()]


async def test_the_first_words_under_an_id_are_the_letter(tmp_path: Path) -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    program = ScriptedProgram(stuck)
    async with company(tmp_path, teams(tmp_path), store=store, clock=clock, program=program) as board:
        await board.send("alpha", "beta", "pay one", message=MESSAGE)
        await board.send("alpha", "beta", "pay a thousand", message=MESSAGE)
    box = PairLog(Pair(sender="alpha", receiver="beta"), store=store, folder=str(tmp_path / "teams"))
    (left,) = await QueuedMessages(box).letters()
    assert left.letter.text == "pay one"
    await store.close()
