"""The matrix of who talks to whom: cases M1 to M14, and who looks after it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.teams.companies import company, roster

from holdfast.core import PERSON, Error, FakeClock, Limits, Refused, is_success
from holdfast.core.errors import InvalidInput, SessionExists, StoreUnavailable
from holdfast.core.events import Noted, SessionOpened
from holdfast.store import MemoryStore, SessionSummary
from holdfast.teams import (
    OUTSIDE,
    Caller,
    Callers,
    Introduction,
    OnCall,
    Roster,
    ScriptedProgram,
    TeamMessage,
    UnknownTeam,
)

DAY = 86_400


def teams(tmp_path: Path, **settings: object) -> Roster:
    return roster("a", "b", "c", project=str(tmp_path), settings=settings)


async def test_m1_m2_each_direction_and_each_asker_has_a_session_and_a_member_of_its_own(
    tmp_path: Path,
) -> None:
    program = ScriptedProgram()
    async with company(tmp_path, teams(tmp_path), program=program) as board:
        for sender, receiver in (("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")):
            await board.ask(sender, receiver, "hi")
        keys = {
            board.key(board.roster.pair(*pair)) for pair in (("a", "b"), ("b", "a"), ("a", "c"), ("b", "c"))
        }
        assert len(keys) == len(program.running) == 4


async def test_m3_m4_m14_a_pair_is_begun_once_however_many_first_messages_come(tmp_path: Path) -> None:
    clock = FakeClock()
    store, on = MemoryStore(clock=clock), teams(tmp_path)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        replies = await asyncio.gather(*(board.ask("a", "b", f"m{n}") for n in range(20)))
        (line,) = await board.sessions()
        with pytest.raises(SessionExists):
            await store.create(_opened(), session=line.id)
    assert [reply.text for reply in replies] == [f"echo[{n + 1}]: m{n}" for n in range(20)]


async def test_m5_who_is_no_team_is_external_and_has_one_session_too(tmp_path: Path) -> None:
    async with company(tmp_path, teams(tmp_path)) as board:
        await board.ask(OUTSIDE, "b", "one")
        await board.ask(OUTSIDE, "b", "two")
        (line,) = await board.sessions()
    assert (line.description, line.turns) == ("external -> b", 2)


async def test_m6_a_team_that_is_not_on_the_roster_is_named(tmp_path: Path) -> None:
    async with company(tmp_path, teams(tmp_path)) as board:
        for sender, receiver in (("a", "x"), ("x", "a")):
            with pytest.raises(UnknownTeam, match="there is no team 'x'"):
                await board.ask(sender, receiver, "hi")
        for wrong in ("", " ", "a" * 1_000_001):
            with pytest.raises(InvalidInput):
                await board.ask("a", "b", wrong)
        with pytest.raises(InvalidInput):
            await board.ask("a", "b", "hi", message="1; drop table")


async def test_m7_m8_m9_the_latest_used_comes_first_and_each_message_counts_once(tmp_path: Path) -> None:
    clock = FakeClock()
    async with company(tmp_path, teams(tmp_path), clock=clock) as board:
        for sender, receiver in (("a", "b"), ("b", "c"), ("a", "b")):
            clock.advance(60)
            await board.ask(sender, receiver, "hi")
        first, second = await board.sessions()
        assert await board.sessions(limit=0) == []
        assert [line.description for line in await board.sessions(limit=1)] == ["a -> b"]
    assert [(first.description, first.turns), (second.description, second.turns)] == [
        ("a -> b", 2),
        ("b -> c", 1),
    ]
    assert first.active_ms > second.active_ms


async def test_m10_after_a_restart_everybody_is_asleep(tmp_path: Path) -> None:
    clock = FakeClock()
    store, on = MemoryStore(clock=clock), teams(tmp_path)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        await board.ask("a", "b", "hi")
        assert set(board.pool.states().values()) == {"idle"}
    async with company(tmp_path, on, store=store, clock=clock) as board:
        assert board.pool.states() == {}
        assert len(await board.sessions()) == 1


async def test_m11_m12_a_busy_pair_is_seen_so_and_others_do_not_touch_it(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        if letter.sender == "a":
            begun.set()
            await go_on.wait()
        return f"done {letter.text}"

    async with company(tmp_path, teams(tmp_path), program=ScriptedProgram(slow)) as board:
        first = asyncio.create_task(board.ask("a", "b", "one"))
        await begun.wait()
        key = board.key(board.roster.pair("a", "b"))
        assert board.pool.states()[key] == "busy"
        second = asyncio.create_task(board.ask("a", "b", "two"))
        assert (await board.ask("c", "b", "me")).text == "done me"
        assert await board.sleep("c", "b")
        assert not await board.cancel("c", "b")
        assert not await board.sleep("a", "b")
        go_on.set()
        assert ((await first).text, (await second).text) == ("done one", "done two")


async def test_m13_a_report_shows_only_the_askers_own_letters(tmp_path: Path) -> None:
    async with company(tmp_path, teams(tmp_path)) as board:
        await board.ask("a", "b", "mine")
        assert len(await board.report("a", "b")) == 1
        assert await board.report("c", "b") == []


async def test_what_was_not_used_for_long_is_archived_and_taken_up_by_the_next_message(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with company(tmp_path, teams(tmp_path, archive_days=90), clock=clock) as board:
        await board.ask("a", "b", "old")
        clock.advance(89 * DAY)
        await board.ask("b", "c", "young")
        assert await board.housekeeping.archive() == []
        clock.advance(2 * DAY)
        (pair,) = await board.housekeeping.archive()
        assert str(pair) == "a -> b"
        assert {line.description: line.lifecycle for line in await board.sessions()} == {
            "a -> b": "paused",
            "b -> c": "open",
        }
        assert board.key(pair) not in board.pool.states()
        assert await board.housekeeping.archive() == []
        reply = await board.ask("a", "b", "recall")
        assert {line.lifecycle for line in await board.sessions()} == {"open"}
    assert (reply.text, reply.generation, reply.notes) == ('recall: ["old"]', 1, ())


@pytest.mark.parametrize("member", ["scripted", "holdfast"])
async def test_a_conversation_is_summarised_by_its_tokens_and_not_by_its_messages(
    tmp_path: Path, member: str
) -> None:
    store = MemoryStore(clock=FakeClock())
    on = roster("a", "b", project=str(tmp_path), member=member, settings={"compact_tokens": 5000})
    async with company(tmp_path, on, store=store) as board:
        for n in range(6):
            await board.ask("a", "b", f"m{n}")
        key = board.key(on.pair("a", "b"))
        before = [type(entry.event).__name__ for entry in await store.read(key)]
        await board.ask("a", "b", "x" * 40_000)
        await board.ask("a", "b", "after")
        after = [entry.event for entry in await store.read(key)]
    assert not {"HistoryCompacted", "Noted"} & set(before)
    assert any(
        type(event).__name__ == "HistoryCompacted" or (isinstance(event, Noted) and event.code == "compacted")
        for event in after
    )


async def test_the_busiest_pairs_are_awake_at_the_start_where_the_roster_says_so(tmp_path: Path) -> None:
    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram()
    async with company(tmp_path, teams(tmp_path), store=store, clock=clock, program=program) as board:
        for sender, receiver in (("a", "b"), ("b", "c"), ("b", "c")):
            await board.ask(sender, receiver, "hi")
    on = teams(tmp_path, awake_at_start=1)
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        await board.housekeeping.wake_the_busiest()
        assert set(board.pool.states()) == {board.key(on.pair("b", "c"))}


async def test_all_teams_spend_from_one_purse_calls_included_also_after_a_restart(tmp_path: Path) -> None:
    told: list[object] = []

    async def reader(letter: TeamMessage, heard: object, on_call: OnCall) -> str:
        told.append(await on_call("Read", {"file_path": str(tmp_path / letter.text)}))
        return "done"

    clock = FakeClock()
    store, program = MemoryStore(clock=clock), ScriptedProgram(reader, kind="claude")
    on = teams(tmp_path, budget=Limits(calls=2))
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        await board.ask("a", "b", "x")
        await board.ask("b", "c", "y")
        await board.ask("c", "a", "z")
    async with company(tmp_path, on, store=store, clock=clock, program=program) as board:
        await board.ask("a", "c", "w")
    assert [isinstance(each, Refused) for each in told] == [False, False, True, True]


async def test_a_purse_binds_our_own_sessions_too(tmp_path: Path) -> None:
    on = roster(
        "a", "b", "c", project=str(tmp_path), member="holdfast", settings={"budget": Limits(iterations=2)}
    )
    async with company(tmp_path, on) as board:
        outcomes = [(await board.ask(x, y, "hi")).outcome for x, y in (("a", "b"), ("b", "c"), ("c", "a"))]
    assert [is_success(outcome) for outcome in outcomes] == [True, True, False]


async def test_a_members_token_ends_with_the_member(tmp_path: Path) -> None:
    callers = Callers()
    tokens: list[str] = []

    def introduce(pair: object, session: object) -> object:
        introduction = callers.introduce("http://127.0.0.1:1/mcp", Caller(team="b"))
        headers = introduction.entry["headers"]
        assert isinstance(headers, dict)
        tokens.append(str(headers["Authorization"]).removeprefix("Bearer "))
        return introduction

    async with company(tmp_path, teams(tmp_path), introduce=introduce) as board:  # type: ignore[arg-type]
        await board.ask("a", "b", "hi")
        assert callers.known(tokens[0]) == Caller(team="b")
        await board.sleep("a", "b")
        assert callers.known(tokens[0]) is None
        await board.ask("a", "b", "again")
        assert callers.known(tokens[1]) is not None
        assert callers.known(tokens[0]) is None
    assert callers.known(tokens[1]) is None


async def test_a_member_that_cannot_be_woken_keeps_no_token(tmp_path: Path) -> None:
    callers = Callers()
    introduced: list[Introduction] = []

    def introduce(pair: object, session: object) -> Introduction:
        introduced.append(callers.introduce("http://x", Caller(team="b")))
        return introduced[-1]

    on = roster("a", "b", project=str(tmp_path), member="claude", program="/no/such/program")
    async with company(tmp_path, on, introduce=introduce) as board:
        reply = await board.ask("a", "b", "hi")
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "member-missing"
    headers = introduced[0].entry["headers"]
    assert isinstance(headers, dict)
    assert callers.known(str(headers["Authorization"]).removeprefix("Bearer ")) is None


def _opened() -> SessionOpened:
    return SessionOpened(
        principal=PERSON, folder="", workspace="", policy="", policy_digest="", model="", description=""
    )


async def test_a_store_that_fails_once_does_not_end_the_housekeeping(tmp_path: Path) -> None:
    class Failing(MemoryStore):
        """A store whose list cannot be read; it tells when it was asked for it a second time."""

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
    async with company(tmp_path, teams(tmp_path, health_seconds=0.01), store=store), asyncio.timeout(50):
        await store.is_asked_again.wait()
    await store.close()
