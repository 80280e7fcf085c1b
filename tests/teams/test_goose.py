"""A real agent of other people's over ACP: goose, against the stub of the Messages API on this machine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.provider_stub import StubServer
from tests.teams.goose_program import goose_program, of_goose
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import team_broker

from holdfast.core import Error, SystemClock, Verdict
from holdfast.store import MemoryStore

KEY = {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "stub-key"}


@pytest.fixture(autouse=True)
def _needs_the_program() -> None:
    """Skipped before anything is opened that a skip would leave open."""
    goose_program()


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer(respond) as server:
        yield server


async def test_goose_keeps_a_conversation_and_takes_it_up_again(tmp_path: Path, stub: StubServer) -> None:
    clock = SystemClock()
    store, on = MemoryStore(clock=clock), of_goose(tmp_path / "p", stub)
    async with team_broker(tmp_path, on, store=store, clock=clock, environ=KEY) as broker:
        first = await broker.ask("alpha", "beta", "the word is kelp")
        many = [await broker.ask("alpha", "beta", f"m{n}") for n in range(3)]
    assert first.text == "echo[1]: the word is kelp"
    assert [reply.text for reply in many] == [f"echo[{n + 2}]: m{n}" for n in range(3)]
    async with team_broker(tmp_path, on, store=store, clock=clock, environ=KEY) as broker:
        reply = await broker.ask("alpha", "beta", "recall")
        (line,) = await broker.sessions()
    assert reply.text == 'recall: ["the word is kelp","m0","m1","m2"]'
    assert (reply.generation, reply.notes, line.turns) == (1, (), 5)


async def test_the_gate_stands_before_the_tools_of_goose(tmp_path: Path, stub: StubServer) -> None:
    project = tmp_path / "p"
    use = 'use shell {"command": "touch %s"}'
    on = of_goose(project, stub)
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=KEY) as broker:
        allowed = await broker.ask("alpha", "beta", use % "yes.txt")
    refused: dict[str, Verdict] = {"acp.other": "deny", "acp.execute": "deny"}
    async with team_broker(
        tmp_path / "again", on, clock=SystemClock(), environ=KEY, verdicts=refused
    ) as broker:
        denied = await broker.ask("alpha", "beta", use % "no.txt")
    assert (project / "yes.txt").exists(), allowed
    assert not (project / "no.txt").exists(), denied
    assert allowed.notes == denied.notes == ()


async def test_no_pair_of_goose_has_heard_what_was_said_to_another(tmp_path: Path, stub: StubServer) -> None:
    on = of_goose(tmp_path / "p", stub)
    pairs = [("alpha", "beta"), ("beta", "alpha"), ("external", "beta")]
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=KEY) as broker:
        await asyncio.gather(*(broker.ask(a, b, f"secret {a} {b}") for a, b in pairs))
        replies = await asyncio.gather(*(broker.ask(a, b, "recall") for a, b in pairs))
    assert [reply.text for reply in replies] == [f'recall: ["secret {a} {b}"]' for a, b in pairs]


async def test_goose_killed_in_mid_turn_is_an_error_at_once_and_remembers_what_was_before(
    tmp_path: Path, stub: StubServer
) -> None:
    on = of_goose(tmp_path / "p", stub)
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=KEY) as broker:
        await broker.ask("alpha", "beta", "before")
        killed = await broker.ask("alpha", "beta", 'use shell {"command": "kill -9 $PPID; sleep 30"}')
        after = await broker.ask("alpha", "beta", "recall")
    assert isinstance(killed.outcome, Error), killed
    assert killed.outcome.code == "member-lost"
    assert '"before"' in after.text


async def test_a_turn_of_goose_is_interrupted_and_the_next_answer_is_its_own(
    tmp_path: Path, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It does not hear a cancel while its provider is silent, so it is ended and taken up anew.
    monkeypatch.setattr("holdfast.teams.acp.connection.INTERRUPT_SECONDS", 0.2)
    on = of_goose(tmp_path / "p", stub)
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=KEY) as broker:
        await broker.ask("alpha", "beta", "before")
        asking = asyncio.create_task(broker.ask("alpha", "beta", "hang"))
        await stub.hanging.wait()
        assert await broker.cancel("alpha", "beta")
        cancelled = await asking
        after = await broker.ask("alpha", "beta", "still there")
    assert isinstance(cancelled.outcome, Error)
    assert cancelled.outcome.code == "cancelled"
    assert after.text.endswith("still there")


async def test_a_forked_conversation_of_goose_goes_its_own_way(tmp_path: Path, stub: StubServer) -> None:
    on = of_goose(tmp_path / "p", stub)
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=KEY) as broker:
        await broker.ask("alpha", "beta", "common")
        await broker.fork("alpha", "beta", "branch")
        await broker.ask("alpha", "beta", "only in the branch", thread="branch")
        trunk = await broker.ask("alpha", "beta", "recall")
        branch = await broker.ask("alpha", "beta", "recall", thread="branch")
    assert trunk.text == 'recall: ["common"]'
    assert branch.text == 'recall: ["common","only in the branch"]'
