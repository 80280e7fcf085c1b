"""One session for each directed pair: found again, created once, never mixed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.teams.companies import company, roster

from holdfast.core import Error, FakeClock, JsonObject, Limits, Ok, Refused
from holdfast.core.errors import InvalidInput
from holdfast.store import MemoryStore
from holdfast.teams import (
    OUTSIDE,
    AskRefused,
    MemberLost,
    OnCall,
    Pair,
    ScriptedProgram,
    TeamMessage,
    UnknownTeam,
)
from holdfast.teams.members.scripted import ScriptedAgent

NAMES = ("alpha", "beta", "gamma")


async def test_each_direction_is_a_session_of_its_own(tmp_path: Path) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        for sender, receiver in (("alpha", "beta"), ("beta", "alpha"), ("gamma", "beta"), (OUTSIDE, "beta")):
            await board.ask(sender, receiver, f"from {sender}")
        lines = await board.sessions()
    assert {line.description for line in lines} == {
        "alpha -> beta",
        "beta -> alpha",
        "gamma -> beta",
        "external -> beta",
    }


@pytest.mark.parametrize("member", ["scripted", "holdfast"])
async def test_no_member_has_heard_what_was_said_to_another(tmp_path: Path, member: str) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path), member=member)) as board:
        pairs = [(a, b, t) for a in (*NAMES, OUTSIDE) for b in NAMES for t in ("", "two")]
        await asyncio.gather(*(board.ask(a, b, f"secret {a} {b} {t}", thread=t) for a, b, t in pairs))
        for a, b, t in pairs:
            reply = await board.ask(a, b, "recall", thread=t)
            assert reply.text == f'recall: ["secret {a} {b} {t}"]', reply


async def test_two_first_messages_at_once_make_one_session_and_both_are_answered(tmp_path: Path) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        replies = await asyncio.gather(*(board.ask("alpha", "beta", f"m{n}") for n in range(5)))
        lines = await board.sessions()
    assert [reply.text for reply in replies] == [f"echo[{n + 1}]: m{n}" for n in range(5)]
    assert [line.turns for line in lines] == [5]


async def test_what_was_said_is_remembered_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram()
    on = roster(*NAMES, project=str(tmp_path))
    async with company(tmp_path, on, store=store, program=program, clock=clock) as board:
        await board.ask("alpha", "beta", "the key is under the mat")
    async with company(tmp_path, on, store=store, program=program, clock=clock) as board:
        reply = await board.ask("alpha", "beta", "recall")
    assert reply.text == 'recall: ["the key is under the mat"]'
    assert reply.notes == ()


async def test_a_lost_transcript_begins_a_new_generation_and_the_caller_is_told(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram()
    on = roster(*NAMES, project=str(tmp_path))
    async with company(tmp_path, on, store=store, program=program, clock=clock) as board:
        await board.ask("alpha", "beta", "remember me")
    program.conversations.clear()
    async with company(tmp_path, on, store=store, program=program, clock=clock) as board:
        reply = await board.ask("alpha", "beta", "recall")
        again = await board.ask("alpha", "beta", "go on")
    assert (reply.text, reply.generation) == ("recall: []", 2)
    assert "memory of earlier messages is lost" in reply.notes[0]
    assert (again.generation, again.notes) == (2, ())


async def test_the_same_message_twice_is_one_turn(tmp_path: Path) -> None:
    id = "550e8400-e29b-41d4-a716-446655440000"
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        first = await board.ask("alpha", "beta", "once", message=id)
        second = await board.ask("alpha", "beta", "once", message=id.upper())
        (line,) = await board.sessions()
    assert first.text == second.text == "echo[1]: once"
    assert line.turns == 1


async def test_who_may_ask_whom_is_on_the_roster(tmp_path: Path) -> None:
    on = roster(*NAMES, project=str(tmp_path), asked_by=("alpha",))
    async with company(tmp_path, on) as board:
        assert (await board.ask("alpha", "beta", "hello")).outcome == Ok(value="echo[1]: hello")
        with pytest.raises(AskRefused):
            await board.ask("gamma", "beta", "hello")
        with pytest.raises(AskRefused):
            await board.ask(OUTSIDE, "beta", "hello")
        with pytest.raises(UnknownTeam):
            await board.ask("alpha", "delta", "hello")
        with pytest.raises(UnknownTeam):
            await board.ask("delta", "beta", "hello")
        with pytest.raises(InvalidInput):
            await board.ask("alpha", "beta", "hello", thread="../x")


async def test_nobody_may_ask_for_more_time_than_the_roster_gives(tmp_path: Path) -> None:
    async def never(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    on = roster(*NAMES, project=str(tmp_path), settings={"turn_seconds": 0.02})
    async with company(tmp_path, on, program=ScriptedProgram(never)) as board:
        late = await board.ask("alpha", "beta", "hello", seconds=1000)
    assert isinstance(late.outcome, Error)
    assert late.outcome.code == "timeout"


async def test_a_time_that_is_up_interrupts_the_turn_and_the_next_answer_is_its_own(tmp_path: Path) -> None:
    async def slow(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        if letter.text == "slow":
            await asyncio.get_running_loop().create_future()
        return f"answer to {letter.text}"

    on = roster(*NAMES, project=str(tmp_path))
    async with company(tmp_path, on, program=ScriptedProgram(slow)) as board:
        late = await board.ask("alpha", "beta", "slow", seconds=0.02)
        after = await board.ask("alpha", "beta", "quick")
    assert isinstance(late.outcome, Error)
    assert late.outcome.code == "timeout"
    assert after.text == "answer to quick"


@pytest.mark.parametrize("fault", [TimeoutError("the disk sleeps"), ValueError("no such key")])
async def test_a_fault_in_a_member_is_told_as_what_it_is_and_ends_the_turn(
    tmp_path: Path, fault: Exception
) -> None:
    async def broken(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        if letter.text == "break":
            raise fault
        return "whole"

    async with company(
        tmp_path, roster(*NAMES, project=str(tmp_path)), program=ScriptedProgram(broken)
    ) as board:
        reply = await board.ask("alpha", "beta", "break")
        after = await board.ask("alpha", "beta", "there?")
        history = await board.said(Pair(sender="alpha", receiver="beta"))
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "internal"
    assert str(fault) in reply.outcome.message
    assert after.text == "whole"
    assert [turn.ended is not None for turn in history.turns] == [True, True]


@pytest.mark.parametrize(
    ("fault", "code"), [(TimeoutError("the disk sleeps"), "member-failed"), (ValueError("no"), "internal")]
)
async def test_nobody_waits_for_a_letter_whose_member_could_not_be_made_ready(
    tmp_path: Path, fault: Exception, code: str
) -> None:
    class Sleeper(ScriptedProgram):
        def agent(self, home: str = "") -> ScriptedAgent:
            raise fault

    async with company(tmp_path, roster(*NAMES, project=str(tmp_path)), program=Sleeper()) as board:
        asking = board.ask("alpha", "beta", "hello")
        if isinstance(fault, OSError):
            assert "the disk sleeps" in str((await asking).outcome)
        else:
            with pytest.raises(type(fault)):
                await asking
        [report] = await board.report("alpha", "beta")
    assert report.state == "failed"
    assert report.reply is not None
    assert isinstance(report.reply.outcome, Error)
    assert report.reply.outcome.code == code


async def test_a_member_that_dies_in_mid_turn_is_an_error_at_once_and_is_taken_up_anew(
    tmp_path: Path,
) -> None:
    program = ScriptedProgram()

    async def dying(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        if letter.text == "die":
            next(iter(program.running)).die()
            await asyncio.get_running_loop().create_future()
        return "alive"

    program.answer = dying
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path)), program=program) as board:
        lost = await board.ask("alpha", "beta", "die")
        after = await board.ask("alpha", "beta", "there?")
    assert isinstance(lost.outcome, Error)
    assert lost.outcome.code == "member-lost"
    assert after.text == "alive"


async def test_an_operator_cancels_one_pair_and_no_other(tmp_path: Path) -> None:
    working = asyncio.Event()

    async def waiting(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        working.set()
        if letter.sender == "alpha":
            await asyncio.get_running_loop().create_future()
        return "done"

    on = roster(*NAMES, project=str(tmp_path))
    async with company(tmp_path, on, program=ScriptedProgram(waiting)) as board:
        asking = asyncio.create_task(board.ask("alpha", "beta", "wait"))
        await working.wait()
        assert not await board.cancel("gamma", "beta")
        assert not await board.sleep("alpha", "beta")
        assert await board.cancel("alpha", "beta")
        reply = await asking
        assert isinstance(reply.outcome, Error)
        assert reply.outcome.code == "cancelled"
        assert (await board.ask("gamma", "beta", "you?")).text == "done"


async def test_word_that_was_left_goes_with_the_next_letter_and_has_a_receipt(tmp_path: Path) -> None:
    clock = FakeClock()
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path)), clock=clock) as board:
        await board.notify("alpha", "beta", "too old", ttl_days=1)
        clock.advance(2 * 86_400)
        await board.notify("alpha", "beta", "the build is green")
        await board.ask("gamma", "beta", "not mine")
        await board.ask("alpha", "beta", "hello")
        reply = await board.ask("alpha", "beta", "recall")
        old, green = await board.notices("alpha", "beta")
    assert reply.text == 'recall: ["the build is green","hello"]'
    assert not old.delivered_with
    assert green.delivered_with


async def test_word_that_went_with_a_letter_that_failed_goes_again_with_the_next(tmp_path: Path) -> None:
    letters: list[TeamMessage] = []

    async def fail_once(letter: TeamMessage, heard: Sequence[str], on_call: OnCall) -> str:
        letters.append(letter)
        if len(letters) == 1:
            raise MemberLost("died in the middle")
        return "done"

    program = ScriptedProgram(fail_once)
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path)), program=program) as board:
        await board.notify("alpha", "beta", "the build is green")
        assert isinstance((await board.ask("alpha", "beta", "one")).outcome, Error)
        (notice,) = await board.notices("alpha", "beta")
        assert not notice.delivered_with
        for text in ("two", "three"):
            assert (await board.ask("alpha", "beta", text)).text == "done"
        (notice,) = await board.notices("alpha", "beta")
    assert [letter.notices for letter in letters] == [("the build is green",), ("the build is green",), ()]
    assert notice.delivered_with == letters[1].id


async def test_word_that_was_left_is_handed_over_when_the_member_is_woken(tmp_path: Path) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        assert await board.wake("alpha", "beta") is None
        await board.notify("alpha", "beta", "the build is green")
        reply = await board.wake("alpha", "beta")
        (notice,) = await board.notices("alpha", "beta")
        recall = await board.ask("alpha", "beta", "recall")
    assert reply is not None
    assert notice.delivered_with
    assert "the build is green" in recall.text


async def test_a_send_without_waiting_is_found_in_the_report(tmp_path: Path) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        sent = await board.send("alpha", "beta", "no hurry")
        assert sent.state == "queued"
        await board.ask("alpha", "beta", "second")
        first, second = await board.report("alpha", "beta")
        assert (first.state, first.message) == ("answered", sent.message)
        assert first.reply is not None
        assert first.reply.text == "echo[1]: no hurry"
        assert second.state == "answered"
        assert await board.report("gamma", "beta") == []


async def test_the_gate_judges_what_a_foreign_member_wants_to_do(tmp_path: Path) -> None:
    async def writer(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        wish: JsonObject = {"file_path": str(tmp_path / "a.txt")}
        answer = await on_call(letter.text, wish)
        return answer.reason if isinstance(answer, Refused) else "allowed"

    on = roster(*NAMES, project=str(tmp_path))
    program = ScriptedProgram(writer, kind="claude")
    async with company(tmp_path, on, program=program, verdicts={"claude.Edit": "deny"}) as board:
        assert (await board.ask("alpha", "beta", "Edit")).text == "claude.Edit is fixed to deny"
        assert (await board.ask("alpha", "beta", "Read")).text == "allowed"
        assert "NoSuchTool" in (await board.ask("alpha", "beta", "NoSuchTool")).text


@pytest.mark.parametrize(
    "tool", ["x_mcp__teams__ask", "mcp__other__mcp__teams__ask", "mcp__teams_", "Mcp__teams__ask"]
)
async def test_a_tool_that_sounds_like_the_desk_is_judged_like_any_other(tmp_path: Path, tool: str) -> None:
    told: list[object] = []

    async def sly(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        told.append(await on_call(tool, {}))
        return "done"

    program = ScriptedProgram(sly, kind="claude")
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path)), program=program) as board:
        await board.ask("alpha", "beta", "go")
    assert [type(answer) for answer in told] == [Refused]


async def test_all_teams_together_spend_no_more_than_one_budget(tmp_path: Path) -> None:
    on = roster(*NAMES, project=str(tmp_path), settings={"budget": Limits(iterations=2)})
    async with company(tmp_path, on) as board:
        assert isinstance((await board.ask("alpha", "beta", "one")).outcome, Ok)
        assert isinstance((await board.ask("beta", "gamma", "two")).outcome, Ok)
        third = await board.ask("gamma", "alpha", "three")
    assert isinstance(third.outcome, Error)
    assert third.outcome.code == "budget-exceeded"


def test_a_pair_is_read_back_from_how_it_is_written() -> None:
    for pair in (Pair(sender="a", receiver="b"), Pair(sender="a.b", receiver="c-d", thread="t_1")):
        assert Pair.read(str(pair)) == pair
    assert Pair.read("mail a -> b") is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
async def test_no_time_to_wait_is_refused(tmp_path: Path, seconds: float) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        with pytest.raises(InvalidInput):
            await board.ask("alpha", "beta", "hello", seconds=seconds)


async def test_half_of_a_character_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    async with company(tmp_path, roster(*NAMES, project=str(tmp_path))) as board:
        for take in (board.ask, board.send, board.notify):
            with pytest.raises(InvalidInput, match="half of a surrogate pair"):
                await take("alpha", "beta", "\ud800")
        assert await board.sessions() == []
