"""Reconciliation of agent homes with our journals when serving starts."""

from pathlib import Path

from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import acp_roster
from tests.teams.test_claude import claude_roster, environ

from holdfast.core import FakeClock, SystemClock
from holdfast.store import MemoryStore
from holdfast.teams import EXTERNAL_SENDER


async def test_missing_journals_are_recreated_including_threads(tmp_path: Path) -> None:
    team_roster = acp_roster(tmp_path / "p")
    async with team_broker(tmp_path, team_roster, clock=SystemClock()) as broker:
        assert await broker.reconcile() == []
        await broker.ask("alpha", "beta", "remember")
        await broker.ask(EXTERNAL_SENDER, "beta", "me too", thread="aside")
        assert await broker.reconcile() == []
    async with team_broker(tmp_path, team_roster, clock=SystemClock()) as broker:
        assert await broker.sessions() == []
        found = await broker.reconcile()
        assert {problem.pair for problem in found} == {"alpha -> beta", "external -> beta #aside"}
        assert {line.description for line in await broker.sessions()} == {problem.pair for problem in found}
        reply = await broker.ask(EXTERNAL_SENDER, "beta", "recall", thread="aside")
        assert await broker.reconcile() == []
    assert reply.text == 'recall: ["me too"]'


async def test_folders_that_are_not_ours_or_not_on_the_roster_are_ignored(tmp_path: Path) -> None:
    clock = FakeClock()
    async with team_broker(tmp_path, roster("a", "b", project=str(tmp_path)), clock=clock) as broker:
        await broker.ask("a", "b", "hi")
    pairs = tmp_path / "teams" / "pairs"
    (pairs / "stray").mkdir()
    (pairs / "forged").mkdir()
    (pairs / "forged" / "pair").write_text("a -> b\n")
    (pairs / "binary").mkdir()
    (pairs / "binary" / "pair").write_bytes(b"\xff\xfe")
    async with team_broker(tmp_path, roster("a", project=str(tmp_path)), clock=clock) as broker:
        assert await broker.reconcile() == []
        assert await broker.sessions() == []
    assert (pairs / "stray").is_dir()


async def test_a_missing_transcript_is_reported_before_the_first_message(tmp_path: Path) -> None:
    claude_program()
    clock = SystemClock()
    store, team_roster = MemoryStore(clock=clock), claude_roster(tmp_path / "p")
    async with StubServer(respond) as stub:
        async with team_broker(
            tmp_path, team_roster, store=store, clock=clock, environ=environ(stub)
        ) as broker:
            await broker.ask("alpha", "beta", "remember")
            assert await broker.reconcile() == []
        for transcript in (tmp_path / "teams" / "pairs").glob("*/config/projects/*/*.jsonl"):
            transcript.unlink()
        async with team_broker(
            tmp_path, team_roster, store=store, clock=clock, environ=environ(stub)
        ) as broker:
            (problem,) = await broker.reconcile()
    assert problem.what == "its transcript is missing; the next message starts a new conversation"
