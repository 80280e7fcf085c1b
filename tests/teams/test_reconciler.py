"""What the members' programs have kept, held against our record when the teams are first served."""

from pathlib import Path

from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import of_parrots
from tests.teams.test_claude import environ, of_claude

from holdfast.core import FakeClock, SystemClock
from holdfast.store import MemoryStore
from holdfast.teams import EXTERNAL_SENDER


async def test_conversations_without_a_record_are_entered_again_threads_included(tmp_path: Path) -> None:
    on = of_parrots(tmp_path / "p")
    async with team_broker(tmp_path, on, clock=SystemClock()) as broker:
        assert await broker.reconcile() == []
        await broker.ask("alpha", "beta", "remember")
        await broker.ask(EXTERNAL_SENDER, "beta", "me too", thread="aside")
        assert await broker.reconcile() == []
    async with team_broker(tmp_path, on, clock=SystemClock()) as broker:
        assert await broker.sessions() == []
        found = await broker.reconcile()
        assert {finding.pair for finding in found} == {"alpha -> beta", "external -> beta #aside"}
        assert {line.description for line in await broker.sessions()} == {finding.pair for finding in found}
        reply = await broker.ask(EXTERNAL_SENDER, "beta", "recall", thread="aside")
        assert await broker.reconcile() == []
    assert reply.text == 'recall: ["me too"]'


async def test_what_is_not_ours_or_not_on_the_roster_is_left_alone(tmp_path: Path) -> None:
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


async def test_a_transcript_that_is_gone_is_told_before_anybody_asks(tmp_path: Path) -> None:
    claude_program()
    clock = SystemClock()
    store, on = MemoryStore(clock=clock), of_claude(tmp_path / "p")
    async with StubServer(respond) as stub:
        async with team_broker(tmp_path, on, store=store, clock=clock, environ=environ(stub)) as broker:
            await broker.ask("alpha", "beta", "remember")
            assert await broker.reconcile() == []
        for transcript in (tmp_path / "teams" / "pairs").glob("*/config/projects/*/*.jsonl"):
            transcript.unlink()
        async with team_broker(tmp_path, on, store=store, clock=clock, environ=environ(stub)) as broker:
            (finding,) = await broker.reconcile()
    assert finding.what == "its transcript is not there; the next message begins anew"
