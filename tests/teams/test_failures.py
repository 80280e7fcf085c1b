"""What goes wrong with sessions and their store: tried again where that helps, told where something is lost, never deleted."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.provider_stub import StubServer
from tests.teams.brain import respond
from tests.teams.companies import company, roster
from tests.teams.installed import claude_program
from tests.teams.test_acp import of_parrots
from tests.teams.test_claude import environ, of_claude

from holdfast.core import Error, Limits, SystemClock
from holdfast.store import Home, Store, open_store
from holdfast.teams import OUTSIDE, Broker, Pair, Roster, TeamReply

REFUSAL = """\
#!/bin/sh
n=$(cat "{count}" 2>/dev/null || echo 0)
echo $((n + 1)) > "{count}"
if [ "$n" -lt {times} ]; then echo "Error: Session ID is already in use." >&2; exit 1; fi
exec "{program}" "$@"
"""


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    claude_program()
    async with StubServer(respond) as server:
        yield server


def refusing(tmp_path: Path, *, times: int) -> Roster:
    """The claude program, which refuses to begin for the first few times."""
    wrapper = tmp_path / "claude"
    wrapper.write_text(REFUSAL.format(count=tmp_path / "count", times=times, program=claude_program()))
    wrapper.chmod(0o755)
    base = of_claude(tmp_path / "p")
    return replace(
        base, teams={name: replace(team, program=str(wrapper)) for name, team in base.teams.items()}
    )


async def test_a_conversation_that_cannot_be_begun_is_tried_once_more(
    tmp_path: Path, stub: StubServer
) -> None:
    async with company(
        tmp_path, refusing(tmp_path, times=1), clock=SystemClock(), environ=environ(stub)
    ) as board:
        reply = await board.ask("alpha", "beta", "hello")
    assert reply.text == "echo[1]: hello"
    assert (tmp_path / "count").read_text().strip() == "2"


async def test_one_that_cannot_be_begun_twice_is_an_error_that_says_why(
    tmp_path: Path, stub: StubServer
) -> None:
    async with company(
        tmp_path, refusing(tmp_path, times=2), clock=SystemClock(), environ=environ(stub)
    ) as board:
        reply = await board.ask("alpha", "beta", "hello")
        assert board.pool.states() == {}
        again = await board.ask("alpha", "beta", "hello again")
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "member-failed"
    assert "already in use" in reply.outcome.message
    assert again.text == "echo[1]: hello again"


@pytest.mark.parametrize("damage", ["garbled", "foreign", "torn"])
async def test_a_transcript_that_cannot_be_used_is_told_and_kept_where_it_is(
    tmp_path: Path, stub: StubServer, damage: str
) -> None:
    async with company(
        tmp_path, of_claude(tmp_path / "p"), clock=SystemClock(), environ=environ(stub)
    ) as board:
        await board.ask("alpha", "beta", "remember")
        await board.sleep("alpha", "beta")
        (transcript,) = (tmp_path / "teams" / "pairs").glob("*/config/projects/*/*.jsonl")
        whole = transcript.read_bytes()
        changed = {
            "garbled": b"\xff" * len(whole),
            "foreign": whole.replace(str(tmp_path / "p").encode(), b"/somewhere/else"),
            "torn": whole + b'{"type": "user", "mess',
        }[damage]
        transcript.write_bytes(changed)
        reply = await board.ask("alpha", "beta", "recall")
    if damage == "torn":
        assert (reply.text, reply.generation, reply.notes) == ('recall: ["remember"]', 1, ())
        return
    assert (reply.text, reply.generation) == ("recall: []", 2)
    why = "cannot be read" if damage == "garbled" else "belongs to another folder"
    assert why in reply.notes[0]
    assert transcript.read_bytes() == changed


async def test_a_damaged_database_is_set_aside_and_the_conversations_are_found_again(tmp_path: Path) -> None:
    clock, on = SystemClock(), of_parrots(tmp_path / "p")
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        await board.ask("alpha", "beta", "remember")
    await store.close()
    home.database.write_bytes(b"not a database" * 1000)
    for beside in home.root.glob(f"{home.database.name}-*"):
        beside.unlink()
    store = await open_store(home, clock=clock)
    assert "the database was damaged" in " ".join(store.notices)
    (aside,) = home.root.glob("damaged-*")
    assert (aside / home.database.name).read_bytes().startswith(b"not a database")
    async with company(tmp_path, on, store=store, clock=clock) as board:
        reply = await board.ask("alpha", "beta", "recall")
    await store.close()
    assert reply.text == 'recall: ["remember"]'
    assert "found again" in reply.notes[0]


async def test_a_list_of_pairs_that_is_gone_is_made_anew_from_the_journals(tmp_path: Path) -> None:
    clock, on = SystemClock(), of_parrots(tmp_path / "p")
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        for sender in ("alpha", "external"):
            await board.ask(sender, "beta", "remember")
    await store.close()
    with sqlite3.connect(home.database) as connection:
        connection.execute("delete from session")
    connection.close()
    store = await open_store(home, clock=clock)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        replies = [await board.ask(sender, "beta", "recall") for sender in ("alpha", "external")]
        lines = await board.sessions()
    await store.close()
    assert [(reply.text, reply.notes) for reply in replies] == [('recall: ["remember"]', ())] * 2
    assert {line.turns for line in lines} == {2}


async def test_a_locked_database_is_an_error_at_the_end_of_its_time_and_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.sqlite.transaction.LOCK_TIMEOUT_SECONDS", 0.05)
    clock, on = SystemClock(), of_parrots(tmp_path / "p")
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        await board.ask("alpha", "beta", "one")
        other = sqlite3.connect(home.database, isolation_level=None)
        other.execute("begin exclusive")
        locked = await board.ask("alpha", "beta", "two")
        other.execute("rollback")
        other.close()
        reply = await board.ask("alpha", "beta", "recall")
    await store.close()
    assert isinstance(locked.outcome, Error)
    assert locked.outcome.code == "store-unavailable"
    assert '"one"' in reply.text


@asynccontextmanager
async def own_company(tmp_path: Path) -> AsyncIterator[tuple[Broker, Store]]:
    """Two teams of our own sessions that spend from one budget, on the disk."""
    clock, home = SystemClock(), Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    settings = {"budget": Limits(tokens=1_000_000), "archive_days": 0}
    on = roster("alpha", "beta", project=str(tmp_path), member="holdfast", settings=settings)
    async with company(tmp_path, on, store=store, clock=clock) as board:
        yield board, store
    await store.close()


def damage(tmp_path: Path, session: str) -> None:
    """Take an event out of the middle of a journal."""
    with sqlite3.connect(Home(tmp_path / "home").database) as connection:
        connection.execute("delete from event where session = ? and seq = 2", [session])
    connection.close()


def refused_with_a_way_out(reply: TeamReply, session: str) -> bool:
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "journal-damaged"
    return f"after `holdfast delete {session}` the next message begins anew" in (reply.outcome.hint or "")


async def test_a_pair_whose_database_was_lost_is_told_how_it_can_begin_anew(tmp_path: Path) -> None:
    async with own_company(tmp_path) as (board, _):
        await board.ask(OUTSIDE, "alpha", "hello")
        key = board.key(Pair(sender=OUTSIDE, receiver="alpha"))
    home = Home(tmp_path / "home")
    (home.root / "sessions" / key / "view").mkdir(parents=True)
    for part in home.root.glob(f"{home.database.name}*"):
        part.unlink()
    async with own_company(tmp_path) as (board, store):
        assert refused_with_a_way_out(await board.ask(OUTSIDE, "alpha", "hello again"), key)
        assert (await board.ask(OUTSIDE, "alpha", "hello", thread="other")).text == "echo[1]: hello"
        await store.delete(key)
        assert (await board.ask(OUTSIDE, "alpha", "hello again")).text == "echo[1]: hello again"


async def test_a_damaged_pair_holds_no_other_up(tmp_path: Path) -> None:
    async with own_company(tmp_path) as (board, _):
        await board.ask(OUTSIDE, "alpha", "hello")
        await board.ask(OUTSIDE, "beta", "hello")
        key = board.key(Pair(sender=OUTSIDE, receiver="alpha"))
        spent = board._tree.spent.tokens
    damage(tmp_path, key)
    async with own_company(tmp_path) as (board, _):
        assert board._tree.spent.tokens == spent
        assert refused_with_a_way_out(await board.ask(OUTSIDE, "alpha", "hello again"), key)
        assert (await board.ask(OUTSIDE, "beta", "hello again")).text == "echo[2]: hello again"
        figures = await board.figures()
        assert (figures.damaged, [each.pair for each in figures.pairs]) == (
            ("external -> alpha",),
            ["external -> beta"],
        )
        assert [str(pair) for pair in await board.housekeeping.archive()] == ["external -> beta"]


async def test_damaged_post_is_told_and_the_other_is_delivered(tmp_path: Path) -> None:
    async with own_company(tmp_path) as (board, _):
        for team in ("alpha", "beta"):
            await board.notify(OUTSIDE, team, "word")
            await board.notify(OUTSIDE, team, "word")
        key = board.key(Pair(sender=OUTSIDE, receiver="alpha")).replace("team-", "mail-")
    damage(tmp_path, key)
    async with own_company(tmp_path) as (board, _):
        (finding,) = await board.discover()
        assert (finding.pair, f"holdfast delete {key}" in finding.what) == ("external -> alpha", True)
        assert await board.take_up() == 0
        assert refused_with_a_way_out(await board.ask(OUTSIDE, "alpha", "hello"), key)
        await board.ask(OUTSIDE, "beta", "hello")
        assert all(notice.delivered_ms for notice in await board.notices(OUTSIDE, "beta"))
