"""A third-party ACP agent, goose, against a local stub of the Messages API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.provider_stub import StubServer
from tests.teams.goose_program import goose_program, goose_roster
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import team_broker

from holdfast.core import Error, SystemClock, Verdict

KEY = {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "stub-key"}


@pytest.fixture(autouse=True)
def _needs_the_program() -> None:
    """Skip before a fixture opens anything."""
    goose_program()


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer(respond) as server:
        yield server


async def test_the_gate_judges_the_tools_of_goose(tmp_path: Path, stub: StubServer) -> None:
    project = tmp_path / "p"
    use = 'use shell {"command": "touch %s"}'
    team_roster = goose_roster(project, stub)
    async with team_broker(tmp_path, team_roster, clock=SystemClock(), environ=KEY) as broker:
        allowed = await broker.ask("alpha", "beta", use % "yes.txt")
    refused: dict[str, Verdict] = {"acp.other": "deny", "acp.execute": "deny"}
    async with team_broker(
        tmp_path / "again", team_roster, clock=SystemClock(), environ=KEY, verdicts=refused
    ) as broker:
        denied = await broker.ask("alpha", "beta", use % "no.txt")
    assert (project / "yes.txt").exists(), allowed
    assert not (project / "no.txt").exists(), denied
    assert allowed.notes == denied.notes == ()


async def test_goose_killed_during_a_turn_fails_at_once_and_keeps_its_memory(
    tmp_path: Path, stub: StubServer
) -> None:
    team_roster = goose_roster(tmp_path / "p", stub)
    async with team_broker(tmp_path, team_roster, clock=SystemClock(), environ=KEY) as broker:
        await broker.ask("alpha", "beta", "before")
        killed = await broker.ask("alpha", "beta", 'use shell {"command": "kill -9 $PPID; sleep 30"}')
        after = await broker.ask("alpha", "beta", "recall")
    assert isinstance(killed.outcome, Error), killed
    assert killed.outcome.code == "member-lost"
    assert '"before"' in after.text
