"""Sessions of pairs: cases M1 to M14, maintenance, shared budgets and tokens."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.teams.team_broker import roster, team_broker

from holdfast.core import PERSON, Error, FakeClock, Limits, Refused, is_success
from holdfast.core.errors import InvalidInput, SessionExists, StoreUnavailable
from holdfast.core.events import Noted, SessionOpened
from holdfast.store import MemoryStore, SessionSummary
from holdfast.teams import (
    EXTERNAL_SENDER,
    Caller,
    Callers,
    IssuedToken,
    OnCall,
    Roster,
    ScriptedProgram,
    TeamMessage,
    UnknownTeam,
)

DAY = 86_400


def teams(tmp_path: Path, **settings: object) -> Roster:
    return roster("a", "b", "c", project=str(tmp_path), settings=settings)


async def test_m1_m2_each_directed_pair_has_its_own_session_and_member(
    tmp_path: Path,
) -> None:
    program = ScriptedProgram()
    async with team_broker(tmp_path, teams(tmp_path), program=program) as broker:
        for sender, receiver in (("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")):
            await broker.ask(sender, receiver, "hi")
        keys = {
            broker.session_id(broker.roster.pair(*pair))
            for pair in (("a", "b"), ("b", "a"), ("a", "c"), ("b", "c"))
        }
        assert len(keys) == len(program.running) == 4


async def test_m3_m4_m14_concurrent_first_messages_create_one_session(tmp_path: Path) -> None:
    clock = FakeClock()
    store, team_roster = MemoryStore(clock=clock), teams(tmp_path)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        replies = await asyncio.gather(*(broker.ask("a", "b", f"m{n}") for n in range(20)))
        (line,) = await broker.sessions()
        with pytest.raises(SessionExists):
            await store.create(_opened(), session=line.id)
    assert [reply.text for reply in replies] == [f"echo[{n + 1}]: m{n}" for n in range(20)]


async def test_m5_an_external_sender_has_one_session(tmp_path: Path) -> None:
    async with team_broker(tmp_path, teams(tmp_path)) as broker:
        await broker.ask(EXTERNAL_SENDER, "b", "one")
        await broker.ask(EXTERNAL_SENDER, "b", "two")
        (line,) = await broker.sessions()
    assert (line.description, line.turns) == ("external -> b", 2)


async def test_m6_an_unknown_team_is_named_in_the_error(tmp_path: Path) -> None:
    async with team_broker(tmp_path, teams(tmp_path)) as broker:
        for sender, receiver in (("a", "x"), ("x", "a")):
            with pytest.raises(UnknownTeam, match="there is no team 'x'"):
                await broker.ask(sender, receiver, "hi")
        for wrong in ("", " ", "a" * 1_000_001):
            with pytest.raises(InvalidInput):
                await broker.ask("a", "b", wrong)
        with pytest.raises(InvalidInput):
            await broker.ask("a", "b", "hi", message_id="1; drop table")


async def test_m7_m8_m9_pairs_are_listed_by_last_use_and_each_message_counts_once(tmp_path: Path) -> None:
    clock = FakeClock()
    async with team_broker(tmp_path, teams(tmp_path), clock=clock) as broker:
        for sender, receiver in (("a", "b"), ("b", "c"), ("a", "b")):
            clock.advance(60)
            await broker.ask(sender, receiver, "hi")
        first, second = await broker.sessions()
        assert await broker.sessions(limit=0) == []
        assert [line.description for line in await broker.sessions(limit=1)] == ["a -> b"]
    assert [(first.description, first.turns), (second.description, second.turns)] == [
        ("a -> b", 2),
        ("b -> c", 1),
    ]
    assert first.active_ms > second.active_ms


async def test_m10_every_member_is_asleep_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    store, team_roster = MemoryStore(clock=clock), teams(tmp_path)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        await broker.ask("a", "b", "hi")
        assert set(broker.pool.states().values()) == {"idle"}
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        assert broker.pool.states() == {}
        assert len(await broker.sessions()) == 1


async def test_m11_m12_a_busy_pair_is_reported_busy_and_is_not_disturbed(tmp_path: Path) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(message: TeamMessage, received: object, on_call: OnCall) -> str:
        if message.sender == "a":
            started.set()
            await go_on.wait()
        return f"done {message.text}"

    async with team_broker(tmp_path, teams(tmp_path), program=ScriptedProgram(slow)) as broker:
        first = asyncio.create_task(broker.ask("a", "b", "one"))
        await started.wait()
        key = broker.session_id(broker.roster.pair("a", "b"))
        assert broker.pool.states()[key] == "busy"
        second = asyncio.create_task(broker.ask("a", "b", "two"))
        assert (await broker.ask("c", "b", "me")).text == "done me"
        assert await broker.sleep("c", "b")
        assert not await broker.cancel("c", "b")
        assert not await broker.sleep("a", "b")
        go_on.set()
        assert ((await first).text, (await second).text) == ("done one", "done two")


async def test_m13_a_report_shows_only_the_senders_own_messages(tmp_path: Path) -> None:
    async with team_broker(tmp_path, teams(tmp_path)) as broker:
        await broker.ask("a", "b", "mine")
        assert len(await broker.report("a", "b")) == 1
        assert await broker.report("c", "b") == []


async def test_an_unused_conversation_is_archived_and_reopened_by_the_next_message(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with team_broker(tmp_path, teams(tmp_path, archive_days=90), clock=clock) as broker:
        await broker.ask("a", "b", "old")
        clock.advance(89 * DAY)
        await broker.ask("b", "c", "young")
        assert await broker.maintenance.archive() == []
        clock.advance(2 * DAY)
        (pair,) = await broker.maintenance.archive()
        assert str(pair) == "a -> b"
        assert {line.description: line.lifecycle for line in await broker.sessions()} == {
            "a -> b": "paused",
            "b -> c": "open",
        }
        assert broker.session_id(pair) not in broker.pool.states()
        assert await broker.maintenance.archive() == []
        reply = await broker.ask("a", "b", "recall")
        assert {line.lifecycle for line in await broker.sessions()} == {"open"}
    assert (reply.text, reply.generation, reply.notes) == ('recall: ["old"]', 1, ())


@pytest.mark.parametrize("member", ["scripted", "holdfast"])
async def test_a_conversation_is_summarised_by_its_tokens_and_not_by_its_messages(
    tmp_path: Path, member: str
) -> None:
    store = MemoryStore(clock=FakeClock())
    team_roster = roster("a", "b", project=str(tmp_path), member=member, settings={"compact_tokens": 5000})
    async with team_broker(tmp_path, team_roster, store=store) as broker:
        for n in range(6):
            await broker.ask("a", "b", f"m{n}")
        key = broker.session_id(team_roster.pair("a", "b"))
        before = [type(entry.event).__name__ for entry in await store.read(key)]
        await broker.ask("a", "b", "x" * 40_000)
        await broker.ask("a", "b", "after")
        after = [entry.event for entry in await store.read(key)]
    assert not {"HistoryCompacted", "Noted"} & set(before)
    assert any(
        type(event).__name__ == "HistoryCompacted" or (isinstance(event, Noted) and event.code == "compacted")
        for event in after
    )


async def test_f31_an_agent_that_cannot_summarise_in_place_is_asked_for_a_summary(tmp_path: Path) -> None:
    briefings: list[str] = []

    async def answer(message: TeamMessage, received: Sequence[str], _on_call: OnCall) -> str:
        briefings.append(message.briefing)
        return "SUMMARY" if "Summarise it" in message.text else f"answer {len(received)}"

    program = ScriptedProgram(answer, can_compact=False)
    team_roster = roster("a", "b", project=str(tmp_path), settings={"compact_tokens": 5000})
    async with team_broker(tmp_path, team_roster, program=program) as broker:
        await broker.ask("a", "b", "x" * 6000)
        reply = await broker.ask("a", "b", "after")
        later = await broker.ask("a", "b", "later")
    assert (reply.text, later.text, reply.generation) == ("answer 1", "answer 2", 1)
    assert briefings == ["", "", "Summary of what was said before: SUMMARY", ""]


async def test_f31_our_record_stands_in_for_a_summary_that_fails(tmp_path: Path) -> None:
    briefings: list[str] = []

    async def answer(message: TeamMessage, received: Sequence[str], _on_call: OnCall) -> str:
        briefings.append(message.briefing)
        return "" if "Summarise it" in message.text else f"answer {len(received)}"

    program = ScriptedProgram(answer, can_compact=False)
    team_roster = roster("a", "b", project=str(tmp_path), settings={"compact_tokens": 5000})
    async with team_broker(tmp_path, team_roster, program=program) as broker:
        await broker.ask("a", "b", "kelp " * 1200)
        await broker.ask("a", "b", "after")
    assert briefings[-1].startswith("Summary of what was said before: Message: kelp kelp")


async def test_the_busiest_pairs_are_woken_at_start_if_the_roster_says_so(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram()
    async with team_broker(tmp_path, teams(tmp_path), store=store, clock=clock, program=program) as broker:
        for sender, receiver in (("a", "b"), ("b", "c"), ("b", "c")):
            await broker.ask(sender, receiver, "hi")
    team_roster = teams(tmp_path, awake_at_start=1)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        await broker.maintenance.wake_busiest()
        assert set(broker.pool.states()) == {broker.session_id(team_roster.pair("b", "c"))}


async def test_all_teams_share_one_budget_of_calls_even_after_a_restart(tmp_path: Path) -> None:
    decisions: list[object] = []

    async def reader(message: TeamMessage, received: object, on_call: OnCall) -> str:
        decisions.append(await on_call("Read", {"file_path": str(tmp_path / message.text)}))
        return "done"

    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram(reader, kind="claude")
    team_roster = teams(tmp_path, budget=Limits(calls=2))
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        await broker.ask("a", "b", "x")
        await broker.ask("b", "c", "y")
        await broker.ask("c", "a", "z")
    async with team_broker(tmp_path, team_roster, store=store, clock=clock, program=program) as broker:
        await broker.ask("a", "c", "w")
    assert [isinstance(each, Refused) for each in decisions] == [False, False, True, True]


async def test_the_shared_budget_limits_holdfast_sessions_too(tmp_path: Path) -> None:
    team_roster = roster(
        "a", "b", "c", project=str(tmp_path), member="holdfast", settings={"budget": Limits(iterations=2)}
    )
    async with team_broker(tmp_path, team_roster) as broker:
        outcomes = [(await broker.ask(x, y, "hi")).outcome for x, y in (("a", "b"), ("b", "c"), ("c", "a"))]
    assert [is_success(outcome) for outcome in outcomes] == [True, True, False]


async def test_a_members_token_is_revoked_with_the_member(tmp_path: Path) -> None:
    callers = Callers()
    tokens: list[str] = []

    def issue_token(pair: object, session: object) -> object:
        issued = callers.issue_token("http://127.0.0.1:1/mcp", Caller(team="b"))
        headers = issued.server_entry["headers"]
        assert isinstance(headers, dict)
        tokens.append(str(headers["Authorization"]).removeprefix("Bearer "))
        return issued

    async with team_broker(tmp_path, teams(tmp_path), issue_token=issue_token) as broker:  # type: ignore[arg-type]
        await broker.ask("a", "b", "hi")
        assert callers.find(tokens[0]) == Caller(team="b")
        await broker.sleep("a", "b")
        assert callers.find(tokens[0]) is None
        await broker.ask("a", "b", "again")
        assert callers.find(tokens[1]) is not None
        assert callers.find(tokens[0]) is None
    assert callers.find(tokens[1]) is None


async def test_a_member_that_fails_to_wake_keeps_no_token(tmp_path: Path) -> None:
    callers = Callers()
    issued: list[IssuedToken] = []

    def issue_token(pair: object, session: object) -> IssuedToken:
        issued.append(callers.issue_token("http://x", Caller(team="b")))
        return issued[-1]

    team_roster = roster("a", "b", project=str(tmp_path), member="claude", program="/no/such/program")
    async with team_broker(tmp_path, team_roster, issue_token=issue_token) as broker:
        reply = await broker.ask("a", "b", "hi")
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "member-missing"
    headers = issued[0].server_entry["headers"]
    assert isinstance(headers, dict)
    assert callers.find(str(headers["Authorization"]).removeprefix("Bearer ")) is None


def _opened() -> SessionOpened:
    return SessionOpened(
        principal=PERSON, folder="", workspace="", policy="", policy_digest="", model="", description=""
    )


async def test_a_store_failure_does_not_end_the_maintenance(tmp_path: Path) -> None:
    class Failing(MemoryStore):
        """A store whose list of sessions cannot be read; sets an event on the second attempt."""

        def __init__(self) -> None:
            super().__init__(clock=FakeClock())
            self.asked = 0
            self.is_asked_again = asyncio.Event()

        async def sessions(
            self, *, limit: int | None = None, folder: str | None = None
        ) -> Sequence[SessionSummary]:
            self.asked += 1
            if self.asked == 2:
                self.is_asked_again.set()
            raise StoreUnavailable("the disk does not answer")

    store = Failing()
    async with team_broker(tmp_path, teams(tmp_path, health_seconds=0.01), store=store), asyncio.timeout(60):
        await store.is_asked_again.wait()
    await store.close()
