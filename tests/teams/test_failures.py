"""Failures of sessions and their store: retried where that helps, reported where something is lost, never deleted."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import acp_roster
from tests.teams.test_claude import claude_roster, environ

from holdfast.core import Error, Limits, SystemClock
from holdfast.store import Home, Store, open_store
from holdfast.teams import EXTERNAL_SENDER, Broker, Pair, Roster, TeamReply

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


def failing_at_start(tmp_path: Path, *, times: int) -> Roster:
    """The small ACP agent, wrapped so that its first few starts fail."""
    base = acp_roster(tmp_path / "p")
    program = base.teams["beta"].program
    wrapper = tmp_path / "agent"
    wrapper.write_text(REFUSAL.format(count=tmp_path / "count", times=times, program=program))
    wrapper.chmod(0o755)
    return replace(
        base, teams={name: replace(team, program=str(wrapper)) for name, team in base.teams.items()}
    )


async def test_creating_a_conversation_is_retried_once(tmp_path: Path) -> None:
    team_roster = failing_at_start(tmp_path, times=1)
    async with team_broker(tmp_path, team_roster, clock=SystemClock()) as broker:
        reply = await broker.ask("alpha", "beta", "hello")
    assert reply.text == "echo[1]: hello"
    assert (tmp_path / "count").read_text().strip() == "2"


async def test_a_conversation_that_fails_to_start_twice_is_an_error_with_the_reason(tmp_path: Path) -> None:
    team_roster = failing_at_start(tmp_path, times=2)
    async with team_broker(tmp_path, team_roster, clock=SystemClock()) as broker:
        reply = await broker.ask("alpha", "beta", "hello")
        assert broker.pool.states() == {}
        again = await broker.ask("alpha", "beta", "hello again")
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "member-failed"
    assert "already in use" in reply.outcome.message
    assert again.text == "echo[1]: hello again"


@pytest.mark.parametrize(
    "damage", ["torn", *(pytest.param(each, marks=pytest.mark.soak) for each in ("garbled", "foreign"))]
)
async def test_an_unusable_transcript_is_reported_and_kept(
    tmp_path: Path, stub: StubServer, damage: str
) -> None:
    async with team_broker(
        tmp_path, claude_roster(tmp_path / "p"), clock=SystemClock(), environ=environ(stub)
    ) as broker:
        await broker.ask("alpha", "beta", "remember")
        await broker.sleep("alpha", "beta")
        (transcript,) = (tmp_path / "teams" / "pairs").glob("*/config/projects/*/*.jsonl")
        whole = transcript.read_bytes()
        changed = {
            "garbled": b"\xff" * len(whole),
            "foreign": whole.replace(str(tmp_path / "p").encode(), b"/somewhere/else"),
            "torn": whole + b'{"type": "user", "mess',
        }[damage]
        transcript.write_bytes(changed)
        reply = await broker.ask("alpha", "beta", "recall")
    if damage == "torn":
        assert (reply.text, reply.generation, reply.notes) == ('recall: ["remember"]', 1, ())
        return
    assert (reply.text, reply.generation) == ("recall: []", 2)
    why = "cannot be read" if damage == "garbled" else "belongs to another folder"
    assert why in reply.notes[0]
    assert transcript.read_bytes() == changed


async def test_a_damaged_database_is_moved_aside_and_conversations_are_found_again(tmp_path: Path) -> None:
    clock, team_roster = SystemClock(), acp_roster(tmp_path / "p")
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        await broker.ask("alpha", "beta", "remember")
    await store.close()
    home.database.write_bytes(b"not a database" * 1000)
    for beside in home.root.glob(f"{home.database.name}-*"):
        beside.unlink()
    store = await open_store(home, clock=clock)
    assert "the database was damaged" in " ".join(store.notices)
    (aside,) = home.root.glob("damaged-*")
    assert (aside / home.database.name).read_bytes().startswith(b"not a database")
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        reply = await broker.ask("alpha", "beta", "recall")
    await store.close()
    assert reply.text == 'recall: ["remember"]'
    assert "found again" in reply.notes[0]


async def test_a_missing_index_of_pairs_is_rebuilt_from_the_journals(tmp_path: Path) -> None:
    clock, team_roster = SystemClock(), acp_roster(tmp_path / "p")
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        for sender in ("alpha", "external"):
            await broker.ask(sender, "beta", "remember")
    await store.close()
    with sqlite3.connect(home.database) as connection:
        connection.execute("delete from session")
    connection.close()
    store = await open_store(home, clock=clock)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        replies = [await broker.ask(sender, "beta", "recall") for sender in ("alpha", "external")]
        lines = await broker.sessions()
    await store.close()
    assert [(reply.text, reply.notes) for reply in replies] == [('recall: ["remember"]', ())] * 2
    assert {line.turns for line in lines} == {2}


async def test_a_locked_database_fails_after_its_timeout_and_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.sqlite.transaction.LOCK_TIMEOUT_SECONDS", 0.05)
    clock, team_roster = SystemClock(), acp_roster(tmp_path / "p")
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        await broker.ask("alpha", "beta", "one")
        other = sqlite3.connect(home.database, isolation_level=None)
        other.execute("begin exclusive")
        locked = await broker.ask("alpha", "beta", "two")
        other.execute("rollback")
        other.close()
        reply = await broker.ask("alpha", "beta", "recall")
    await store.close()
    assert isinstance(locked.outcome, Error)
    assert locked.outcome.code == "store-unavailable"
    assert '"one"' in reply.text


@asynccontextmanager
async def holdfast_broker(tmp_path: Path) -> AsyncIterator[tuple[Broker, Store]]:
    """Two teams of Holdfast sessions with one shared budget, in a store on disk."""
    clock, home = SystemClock(), Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    settings = {"budget": Limits(tokens=1_000_000), "archive_days": 0}
    team_roster = roster("alpha", "beta", project=str(tmp_path), member="holdfast", settings=settings)
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        yield broker, store
    await store.close()


def damage(tmp_path: Path, session: str) -> None:
    """Remove an event from the middle of a journal."""
    with sqlite3.connect(Home(tmp_path / "home").database) as connection:
        connection.execute("delete from event where session = ? and seq = 2", [session])
    connection.close()


def refused_with_a_way_out(reply: TeamReply, session: str) -> bool:
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "journal-damaged"
    return f"after `holdfast delete {session}` the next message starts a new conversation" in (
        reply.outcome.hint or ""
    )


async def test_a_damaged_pair_is_reported_with_the_commands_that_recover_it(tmp_path: Path) -> None:
    async with holdfast_broker(tmp_path) as (broker, _):
        await broker.ask(EXTERNAL_SENDER, "alpha", "hello")
        key = broker.session_id(Pair(sender=EXTERNAL_SENDER, receiver="alpha"))
    home = Home(tmp_path / "home")
    (home.root / "sessions" / key / "view").mkdir(parents=True)
    for part in home.root.glob(f"{home.database.name}*"):
        part.unlink()
    async with holdfast_broker(tmp_path) as (broker, store):
        assert refused_with_a_way_out(await broker.ask(EXTERNAL_SENDER, "alpha", "hello again"), key)
        assert (await broker.ask(EXTERNAL_SENDER, "alpha", "hello", thread="other")).text == "echo[1]: hello"
        await store.delete(key)
        assert (await broker.ask(EXTERNAL_SENDER, "alpha", "hello again")).text == "echo[1]: hello again"


async def test_a_damaged_pair_blocks_no_other(tmp_path: Path) -> None:
    async with holdfast_broker(tmp_path) as (broker, _):
        await broker.ask(EXTERNAL_SENDER, "alpha", "hello")
        await broker.ask(EXTERNAL_SENDER, "beta", "hello")
        key = broker.session_id(Pair(sender=EXTERNAL_SENDER, receiver="alpha"))
        spent = broker._tree.spent.tokens
    damage(tmp_path, key)
    async with holdfast_broker(tmp_path) as (broker, _):
        assert broker._tree.spent.tokens == spent
        assert refused_with_a_way_out(await broker.ask(EXTERNAL_SENDER, "alpha", "hello again"), key)
        assert (await broker.ask(EXTERNAL_SENDER, "beta", "hello again")).text == "echo[2]: hello again"
        figures = await broker.stats()
        assert (figures.damaged, [each.pair for each in figures.pairs]) == (
            ("external -> alpha",),
            ["external -> beta"],
        )
        assert [str(pair) for pair in await broker.maintenance.archive()] == ["external -> beta"]


async def test_a_damaged_pair_log_is_reported_and_the_others_are_delivered(tmp_path: Path) -> None:
    async with holdfast_broker(tmp_path) as (broker, _):
        for team in ("alpha", "beta"):
            await broker.notify(EXTERNAL_SENDER, team, "notice")
            await broker.notify(EXTERNAL_SENDER, team, "notice")
        key = broker.session_id(Pair(sender=EXTERNAL_SENDER, receiver="alpha")).replace("team-", "mail-")
    damage(tmp_path, key)
    async with holdfast_broker(tmp_path) as (broker, _):
        (finding,) = await broker.reconcile()
        assert (finding.pair, f"holdfast delete {key}" in finding.what) == ("external -> alpha", True)
        assert await broker.resume_pending() == 0
        assert refused_with_a_way_out(await broker.ask(EXTERNAL_SENDER, "alpha", "hello"), key)
        await broker.ask(EXTERNAL_SENDER, "beta", "hello")
        assert all(notice.delivered_ms for notice in await broker.notices(EXTERNAL_SENDER, "beta"))
