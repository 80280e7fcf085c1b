"""Holdfast sessions as members that ask other teams: through their gate, in their own name, within their permissions."""

from pathlib import Path

import pytest
from tests.teams.team_broker import echo_model, messages_to, roster, team_broker

from holdfast.core import Call, FakeClock, Performed, ToolMessage, call_id
from holdfast.core.events import CallIntended, CallRefused
from holdfast.guests import script
from holdfast.models import Prompt, say, use
from holdfast.models import Reply as ModelReply
from holdfast.store import MemoryStore
from holdfast.teams import AskRefused, Broker, OnCall, Roster, ScriptedProgram, TeamMessage
from holdfast.teams.toolset import TeamsToolset


def chain(prompt: Prompt) -> ModelReply:
    """`pass TEAM rest` asks that team the rest; anything else is echoed."""
    last = prompt.messages[-1]
    if isinstance(last, ToolMessage):
        return say(f"result: {last.returns[0].content}")
    verb, _, rest = messages_to(prompt)[-1].partition(" ")
    if verb not in ("pass", "send", "notify"):
        return echo_model(prompt)
    team, _, text = rest.partition(" ")
    name, argument = {"pass": ("ask", "question")}.get(verb, (verb, "message"))
    step = {"call": f"teams.{name}", "arguments": {"team": team, argument: text}, "catch": True}
    return use("execute_code", {"code": script(step)})  # type: ignore[arg-type]


def own(tmp_path: Path, **settings: object) -> Roster:
    return roster("a", "b", "c", project=str(tmp_path), member="holdfast", settings=settings)


async def test_a_session_asks_another_team_in_its_own_name_and_the_hop_is_counted(tmp_path: Path) -> None:
    async with team_broker(tmp_path, own(tmp_path), model=chain) as broker:
        reply = await broker.ask("external", "a", "pass b pass c who is there")
        (middle,) = await broker.report("a", "b")
        (inner,) = await broker.report("b", "c")
        pairs = {line.description for line in await broker.sessions()}
    assert "echo[1]: who is there" in reply.text
    assert (middle.hops, inner.hops) == (1, 2)
    assert pairs == {"external -> a", "a -> b", "b -> c"}


async def test_a_question_that_would_wait_for_itself_is_refused_and_the_others_are_answered(
    tmp_path: Path,
) -> None:
    async with team_broker(tmp_path, own(tmp_path), model=chain) as broker:
        reply = await broker.ask("external", "a", "pass b pass a pass b anybody")
    assert "would-deadlock" in reply.text or "wait for its own answer" in reply.text


async def test_the_senders_gate_judges_and_records_the_question(tmp_path: Path) -> None:
    store = MemoryStore(clock=FakeClock())
    team_roster = own(tmp_path)
    async with team_broker(
        tmp_path, team_roster, model=chain, store=store, verdicts={"teams.ask": "deny"}
    ) as broker:
        reply = await broker.ask("external", "a", "pass b hello")
        recorded = await store.read(broker.session_id(team_roster.pair("external", "a")))
        pairs = {line.description for line in await broker.sessions()}
    assert "teams.ask is fixed to deny" in reply.text
    assert pairs == {"external -> a"}
    refused = [entry.event for entry in recorded if isinstance(entry.event, CallRefused)]
    assert [event.call.operation for event in refused] == ["teams.ask"]


async def test_asking_another_team_grants_no_permissions(tmp_path: Path) -> None:
    """a may not ask b, even when external, who may, asks a to."""
    base = own(tmp_path)
    team_roster = Roster(
        settings=base.settings,
        teams={
            "a": base.teams["a"],
            "b": roster("b", project=str(tmp_path), member="holdfast", asked_by=("external",)).teams["b"],
        },
    )
    async with team_broker(tmp_path, team_roster, model=chain) as broker:
        reply = await broker.ask("external", "a", "pass b hello")
        pairs = {line.description for line in await broker.sessions()}
    assert "a may not ask b" in reply.text
    assert pairs == {"external -> a"}


@pytest.mark.parametrize("verb", ["send", "notify"])
async def test_a_session_sends_messages_and_notices_in_its_own_name(tmp_path: Path, verb: str) -> None:
    async with team_broker(tmp_path, own(tmp_path), model=chain) as broker:
        reply = await broker.ask("external", "a", f"{verb} b no hurry")
        if verb == "send":
            (sent,) = await broker.report("a", "b")
            assert sent.hops == 1
        else:
            (notice,) = await broker.notices("a", "b")
            assert notice.text == "no hurry"
    assert "result:" in reply.text


async def test_a_repeated_call_has_the_same_message_id(tmp_path: Path) -> None:
    team_roster = own(tmp_path)
    asked: list[Performed] = []

    async def twice(message: TeamMessage, received: object, on_call: OnCall) -> str:
        tools = TeamsToolset(
            brokers[0], team="a", asking_session=brokers[0].session_id(team_roster.pair("external", "a"))
        )
        call = Call(id=call_id(1, 1), operation="teams.ask", arguments={"team": "b", "question": "once"})
        for _ in range(2):
            asked.append(await tools.perform(call, is_staged=False))
        return "done"

    brokers: list[Broker] = []
    scripted = roster("a", project=str(tmp_path)).teams["a"]
    team_roster = Roster(settings=team_roster.settings, teams=team_roster.teams | {"a": scripted})
    async with team_broker(tmp_path, team_roster, model=chain, program=ScriptedProgram(twice)) as broker:
        brokers.append(broker)
        await broker.ask("external", "a", "ask")
        turns = {line.description: line.turns for line in await broker.sessions()}
    first, again = asked
    assert isinstance(first.result, dict)
    assert isinstance(again.result, dict)
    assert first.result["text"] == again.result["text"] == "echo[1]: once"
    assert turns["a -> b"] == 1


async def test_a_member_cannot_ask_outside_a_turn(tmp_path: Path) -> None:
    async with team_broker(tmp_path, own(tmp_path), model=chain) as broker:
        await broker.ask("external", "a", "hello")
        within = broker.session_id(broker.roster.pair("external", "a"))
        with pytest.raises(AskRefused):
            await broker.ask("a", "b", "behind your back", asking_session=within)
        with pytest.raises(AskRefused):
            await broker.send("a", "b", "behind your back", asking_session=within)


async def test_questions_are_recorded_in_the_senders_session(tmp_path: Path) -> None:
    store, team_roster = MemoryStore(clock=FakeClock()), own(tmp_path)
    async with team_broker(tmp_path, team_roster, model=chain, store=store) as broker:
        await broker.ask("external", "a", "pass b hello")
        recorded = await store.read(broker.session_id(team_roster.pair("external", "a")))
    intended = [entry.event for entry in recorded if isinstance(entry.event, CallIntended)]
    assert [event.call.operation for event in intended] == ["teams.ask"]
