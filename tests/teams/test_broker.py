"""The broker: one session per directed pair, created once, found again and never mixed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.teams.team_broker import roster, team_broker

from holdfast.core import Error, FakeClock, JsonObject, Limits, Ok, Refused
from holdfast.core.errors import InvalidInput
from holdfast.store import MemoryStore
from holdfast.teams import (
    EXTERNAL_SENDER,
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


async def test_each_direction_has_its_own_session(tmp_path: Path) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        for sender, receiver in (
            ("alpha", "beta"),
            ("beta", "alpha"),
            ("gamma", "beta"),
            (EXTERNAL_SENDER, "beta"),
        ):
            await broker.ask(sender, receiver, f"from {sender}")
        lines = await broker.sessions()
    assert {line.description for line in lines} == {
        "alpha -> beta",
        "beta -> alpha",
        "gamma -> beta",
        "external -> beta",
    }


@pytest.mark.parametrize("member", ["scripted", "holdfast"])
async def test_no_member_knows_the_messages_of_another(tmp_path: Path, member: str) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path), member=member)) as broker:
        pairs = [(a, b, t) for a in (*NAMES, EXTERNAL_SENDER) for b in NAMES for t in ("", "two")]
        await asyncio.gather(*(broker.ask(a, b, f"secret {a} {b} {t}", thread=t) for a, b, t in pairs))
        for a, b, t in pairs:
            reply = await broker.ask(a, b, "recall", thread=t)
            assert reply.text == f'recall: ["secret {a} {b} {t}"]', reply


async def test_two_concurrent_first_messages_share_one_session(tmp_path: Path) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        replies = await asyncio.gather(*(broker.ask("alpha", "beta", f"m{n}") for n in range(5)))
        lines = await broker.sessions()
    assert [reply.text for reply in replies] == [f"echo[{n + 1}]: m{n}" for n in range(5)]
    assert [line.turns for line in lines] == [5]


async def test_a_conversation_is_remembered_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram()
    team_roster = roster(*NAMES, project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, store=store, program=program, clock=clock) as broker:
        await broker.ask("alpha", "beta", "the key is under the mat")
    async with team_broker(tmp_path, team_roster, store=store, program=program, clock=clock) as broker:
        reply = await broker.ask("alpha", "beta", "recall")
    assert reply.text == 'recall: ["the key is under the mat"]'
    assert reply.notes == ()


async def test_a_lost_transcript_starts_a_new_generation_and_notes_it(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram()
    team_roster = roster(*NAMES, project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, store=store, program=program, clock=clock) as broker:
        await broker.ask("alpha", "beta", "remember me")
    program.conversations.clear()
    async with team_broker(tmp_path, team_roster, store=store, program=program, clock=clock) as broker:
        reply = await broker.ask("alpha", "beta", "recall")
        again = await broker.ask("alpha", "beta", "go on")
    assert (reply.text, reply.generation) == ("recall: []", 2)
    assert "memory of earlier messages is lost" in reply.notes[0]
    assert (again.generation, again.notes) == (2, ())


async def test_f31_an_agent_that_lost_its_memory_is_briefed_from_our_journal(tmp_path: Path) -> None:
    briefings: list[str] = []

    async def answer(message: TeamMessage, received: Sequence[str], on_call: OnCall) -> str:
        briefings.append(message.briefing)
        if message.text == "fail":
            raise MemberLost("no luck")
        return f"answer to {message.text}"

    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram(answer)
    team_roster = roster(*NAMES, project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, store=store, program=program, clock=clock) as broker:
        for text in ("the word is kelp", "x" * 30_000, "and sand"):
            await broker.ask("alpha", "beta", text)
        await broker.sleep("alpha", "beta")
        await broker.wake("alpha", "beta")
        assert briefings == ["", "", ""]
        # A conversation that is lost again before it was used is still briefed, until it has answered.
        for _ in range(2):
            await broker.sleep("alpha", "beta")
            program.conversations.clear()
            await broker.wake("alpha", "beta")
        await broker.ask("alpha", "beta", "fail")
        reply = await broker.ask("alpha", "beta", "go on")
        await broker.ask("alpha", "beta", "and on")
    failed, briefed, after = briefings[3:]
    assert failed == briefed
    assert "Message: and sand\nYour answer: answer to and sand" in briefed
    assert "earlier message" in briefed
    assert len(briefed) < 25_000
    assert after == ""
    assert reply.generation == 2


async def test_the_same_message_twice_runs_one_turn(tmp_path: Path) -> None:
    id = "550e8400-e29b-41d4-a716-446655440000"
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        first = await broker.ask("alpha", "beta", "once", message_id=id)
        second = await broker.ask("alpha", "beta", "once", message_id=id.upper())
        (line,) = await broker.sessions()
    assert first.text == second.text == "echo[1]: once"
    assert line.turns == 1


async def test_the_roster_decides_who_may_ask_whom(tmp_path: Path) -> None:
    team_roster = roster(*NAMES, project=str(tmp_path), asked_by=("alpha",))
    async with team_broker(tmp_path, team_roster) as broker:
        assert (await broker.ask("alpha", "beta", "hello")).outcome == Ok(value="echo[1]: hello")
        with pytest.raises(AskRefused):
            await broker.ask("gamma", "beta", "hello")
        with pytest.raises(AskRefused):
            await broker.ask(EXTERNAL_SENDER, "beta", "hello")
        with pytest.raises(UnknownTeam):
            await broker.ask("alpha", "delta", "hello")
        with pytest.raises(UnknownTeam):
            await broker.ask("delta", "beta", "hello")
        with pytest.raises(InvalidInput):
            await broker.ask("alpha", "beta", "hello", thread="../x")


async def test_a_caller_cannot_wait_longer_than_the_roster_allows(tmp_path: Path) -> None:
    async def never(message: TeamMessage, received: object, on_call: OnCall) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    team_roster = roster(*NAMES, project=str(tmp_path), settings={"turn_seconds": 0.02})
    async with team_broker(tmp_path, team_roster, program=ScriptedProgram(never)) as broker:
        late = await broker.ask("alpha", "beta", "hello", seconds=1000)
    assert isinstance(late.outcome, Error)
    assert late.outcome.code == "timeout"


async def test_a_timeout_interrupts_the_turn_and_the_next_message_gets_its_own_answer(tmp_path: Path) -> None:
    async def slow(message: TeamMessage, received: object, on_call: OnCall) -> str:
        if message.text == "slow":
            await asyncio.get_running_loop().create_future()
        return f"answer to {message.text}"

    team_roster = roster(*NAMES, project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, program=ScriptedProgram(slow)) as broker:
        late = await broker.ask("alpha", "beta", "slow", seconds=0.02)
        after = await broker.ask("alpha", "beta", "quick")
    assert isinstance(late.outcome, Error)
    assert late.outcome.code == "timeout"
    assert after.text == "answer to quick"


@pytest.mark.parametrize("fault", [TimeoutError("the disk sleeps"), ValueError("no such key")])
async def test_a_defect_in_a_member_is_reported_and_ends_the_turn(tmp_path: Path, fault: Exception) -> None:
    async def broken(message: TeamMessage, received: object, on_call: OnCall) -> str:
        if message.text == "break":
            raise fault
        return "whole"

    async with team_broker(
        tmp_path, roster(*NAMES, project=str(tmp_path)), program=ScriptedProgram(broken)
    ) as broker:
        reply = await broker.ask("alpha", "beta", "break")
        after = await broker.ask("alpha", "beta", "there?")
        history = await broker.history(Pair(sender="alpha", receiver="beta"))
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "internal"
    assert str(fault) in reply.outcome.message
    assert after.text == "whole"
    assert [turn.ended is not None for turn in history.turns] == [True, True]


@pytest.mark.parametrize(
    ("fault", "code"), [(TimeoutError("the disk sleeps"), "member-failed"), (ValueError("no"), "internal")]
)
async def test_a_message_whose_member_fails_to_wake_does_not_stay_in_flight(
    tmp_path: Path, fault: Exception, code: str
) -> None:
    class Sleeper(ScriptedProgram):
        def agent(self, home: str = "") -> ScriptedAgent:
            raise fault

    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path)), program=Sleeper()) as broker:
        asking = broker.ask("alpha", "beta", "hello")
        if isinstance(fault, OSError):
            assert "the disk sleeps" in str((await asking).outcome)
        else:
            with pytest.raises(type(fault)):
                await asking
        [report] = await broker.report("alpha", "beta")
    assert report.state == "failed"
    assert report.reply is not None
    assert isinstance(report.reply.outcome, Error)
    assert report.reply.outcome.code == code


async def test_a_member_that_dies_during_a_turn_fails_at_once_and_is_resumed(
    tmp_path: Path,
) -> None:
    program = ScriptedProgram()

    async def dying(message: TeamMessage, received: object, on_call: OnCall) -> str:
        if message.text == "die":
            next(iter(program.running)).crash()
            await asyncio.get_running_loop().create_future()
        return "alive"

    program.answer = dying
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path)), program=program) as broker:
        lost = await broker.ask("alpha", "beta", "die")
        after = await broker.ask("alpha", "beta", "there?")
    assert isinstance(lost.outcome, Error)
    assert lost.outcome.code == "member-lost"
    assert after.text == "alive"


async def test_an_operator_cancels_only_the_chosen_pair(tmp_path: Path) -> None:
    working = asyncio.Event()

    async def waiting(message: TeamMessage, received: object, on_call: OnCall) -> str:
        working.set()
        if message.sender == "alpha":
            await asyncio.get_running_loop().create_future()
        return "done"

    team_roster = roster(*NAMES, project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, program=ScriptedProgram(waiting)) as broker:
        asking = asyncio.create_task(broker.ask("alpha", "beta", "wait"))
        await working.wait()
        assert not await broker.cancel("gamma", "beta")
        assert not await broker.sleep("alpha", "beta")
        assert await broker.cancel("alpha", "beta")
        reply = await asking
        assert isinstance(reply.outcome, Error)
        assert reply.outcome.code == "cancelled"
        assert (await broker.ask("gamma", "beta", "you?")).text == "done"


async def test_a_notice_is_delivered_with_the_next_message_and_gets_a_receipt(tmp_path: Path) -> None:
    clock = FakeClock()
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path)), clock=clock) as broker:
        await broker.notify("alpha", "beta", "too old", ttl_days=1)
        clock.advance(2 * 86_400)
        await broker.notify("alpha", "beta", "the build is green")
        await broker.ask("gamma", "beta", "not mine")
        await broker.ask("alpha", "beta", "hello")
        reply = await broker.ask("alpha", "beta", "recall")
        old, green = await broker.notices("alpha", "beta")
    assert reply.text == 'recall: ["the build is green","hello"]'
    assert not old.delivered_with
    assert green.delivered_with


async def test_a_notice_delivered_with_a_failed_message_is_delivered_again(tmp_path: Path) -> None:
    messages: list[TeamMessage] = []

    async def fail_once(message: TeamMessage, received: Sequence[str], on_call: OnCall) -> str:
        messages.append(message)
        if len(messages) == 1:
            raise MemberLost("died in the middle")
        return "done"

    program = ScriptedProgram(fail_once)
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path)), program=program) as broker:
        await broker.notify("alpha", "beta", "the build is green")
        assert isinstance((await broker.ask("alpha", "beta", "one")).outcome, Error)
        (notice,) = await broker.notices("alpha", "beta")
        assert not notice.delivered_with
        for text in ("two", "three"):
            assert (await broker.ask("alpha", "beta", text)).text == "done"
        (notice,) = await broker.notices("alpha", "beta")
    assert [message.notices for message in messages] == [("the build is green",), ("the build is green",), ()]
    assert notice.delivered_with == messages[1].id


async def test_a_notice_is_delivered_when_the_member_is_woken(tmp_path: Path) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        assert await broker.wake("alpha", "beta") is None
        await broker.notify("alpha", "beta", "the build is green")
        reply = await broker.wake("alpha", "beta")
        (notice,) = await broker.notices("alpha", "beta")
        recall = await broker.ask("alpha", "beta", "recall")
    assert reply is not None
    assert notice.delivered_with
    assert "the build is green" in recall.text


async def test_a_message_sent_without_waiting_is_in_the_report(tmp_path: Path) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        sent = await broker.send("alpha", "beta", "no hurry")
        assert sent.state == "queued"
        await broker.ask("alpha", "beta", "second")
        first, second = await broker.report("alpha", "beta")
        assert (first.state, first.message) == ("answered", sent.message)
        assert first.reply is not None
        assert first.reply.text == "echo[1]: no hurry"
        assert second.state == "answered"
        assert await broker.report("gamma", "beta") == []


async def test_the_gate_judges_the_calls_of_an_external_member(tmp_path: Path) -> None:
    async def writer(message: TeamMessage, received: object, on_call: OnCall) -> str:
        wish: JsonObject = {"file_path": str(tmp_path / "a.txt")}
        answer = await on_call(message.text, wish)
        return answer.reason if isinstance(answer, Refused) else "allowed"

    team_roster = roster(*NAMES, project=str(tmp_path))
    program = ScriptedProgram(writer, kind="claude")
    async with team_broker(
        tmp_path, team_roster, program=program, verdicts={"claude.Edit": "deny"}
    ) as broker:
        assert (await broker.ask("alpha", "beta", "Edit")).text == "claude.Edit is fixed to deny"
        assert (await broker.ask("alpha", "beta", "Read")).text == "allowed"
        assert "NoSuchTool" in (await broker.ask("alpha", "beta", "NoSuchTool")).text


@pytest.mark.parametrize(
    "tool", ["x_mcp__teams__ask", "mcp__other__mcp__teams__ask", "mcp__teams_", "Mcp__teams__ask"]
)
async def test_a_tool_named_like_the_teams_server_is_judged_like_any_other(tmp_path: Path, tool: str) -> None:
    decisions: list[object] = []

    async def sly(message: TeamMessage, received: object, on_call: OnCall) -> str:
        decisions.append(await on_call(tool, {}))
        return "done"

    program = ScriptedProgram(sly, kind="claude")
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path)), program=program) as broker:
        await broker.ask("alpha", "beta", "go")
    assert [type(answer) for answer in decisions] == [Refused]


async def test_all_teams_share_one_budget(tmp_path: Path) -> None:
    team_roster = roster(*NAMES, project=str(tmp_path), settings={"budget": Limits(iterations=2)})
    async with team_broker(tmp_path, team_roster) as broker:
        assert isinstance((await broker.ask("alpha", "beta", "one")).outcome, Ok)
        assert isinstance((await broker.ask("beta", "gamma", "two")).outcome, Ok)
        third = await broker.ask("gamma", "alpha", "three")
    assert isinstance(third.outcome, Error)
    assert third.outcome.code == "budget-exceeded"


def test_a_pair_is_parsed_from_its_text_form() -> None:
    for pair in (Pair(sender="a", receiver="b"), Pair(sender="a.b", receiver="c-d", thread="t_1")):
        assert Pair.parse(str(pair)) == pair
    assert Pair.parse("mail a -> b") is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
async def test_a_wait_of_zero_seconds_is_refused(tmp_path: Path, seconds: float) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        with pytest.raises(InvalidInput):
            await broker.ask("alpha", "beta", "hello", seconds=seconds)


async def test_an_unpaired_surrogate_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with team_broker(tmp_path, roster(*NAMES, project=str(tmp_path))) as broker:
        for take in (broker.ask, broker.send, broker.notify):
            with pytest.raises(InvalidInput, match="unpaired surrogate"):
                await take("alpha", "beta", "\ud800")
        assert await broker.sessions() == []


async def test_two_brokers_cannot_hold_one_session(tmp_path: Path) -> None:
    clock, program = FakeClock(), ScriptedProgram()
    store, team_roster = MemoryStore(clock=clock), roster("alpha", "beta", project=str(tmp_path))
    async with (
        team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as one,
        team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as other,
    ):
        assert (await one.ask("alpha", "beta", "mine")).text == "echo[1]: mine"
        held = await other.ask("alpha", "beta", "mine too")
        assert isinstance(held.outcome, Error)
        assert held.outcome.code == "session-held"
        await one.sleep("alpha", "beta")
        assert (await other.ask("alpha", "beta", "recall")).text == 'recall: ["mine"]'
