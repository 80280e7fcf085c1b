"""Deleting the session of a pair deletes its whole conversation: also what the external agent kept, and queued messages."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.support.provider_stub import StubServer
from tests.teams import acp_agent
from tests.teams.claude_program import claude_program
from tests.teams.scripted_provider import respond

from holdfast.core import SystemClock
from holdfast.store import Home, open_store
from holdfast.teams.pair_log import Notices, PairLog
from holdfast.teams.pairs import Pair

__all__ = ["run"]  # a fixture that pytest finds by its name here

WORD = b"canary4b1d"


def holding(home: Path) -> list[str]:
    """The files of a data directory that contain the canary."""
    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and WORD in path.read_bytes()
    ]


def write_roster(home: Path, project: Path, member: str) -> None:
    """A roster of one team with a member of this kind, which a person may ask."""
    project.mkdir()
    home.mkdir(mode=0o700)
    (home / "teams.yaml").write_text(f"teams:\n  a:\n    project: {project}\n{member}")


async def leave_notice(home: Path) -> None:
    """Queue a notice for the team."""
    store = await open_store(Home(home), clock=SystemClock())
    log = PairLog(Pair(sender="external", receiver="a"), store=store, folder=str(home / "teams" / "default"))
    await Notices(log, clock=SystemClock()).add(f"notice {WORD.decode()}", ttl_days=1)
    await store.close()


def check_deletion(run: Run, home: Path, recall: str) -> None:
    """Ask, leave a notice, delete the session, and ask again."""
    assert run("teams", "ask", "a", f"first {WORD.decode()}").code == 0
    asyncio.run(leave_notice(home))
    [pair] = json.loads(run("teams", "status", "--json").out)
    assert any(path.startswith("teams/") for path in holding(home)), "the agent kept it"
    assert run("delete", pair["id"], "--yes").code == 0
    assert holding(home) == []
    assert json.loads(run("teams", "status", "--json").out) == []
    after = run("teams", "ask", "a", recall)
    assert after.code == 0, after.err
    assert WORD.decode() not in after.out + after.err
    assert json.loads(run("teams", "log", "--json").out)[0]["text"] == recall


def test_f06_the_conversation_of_an_agent_over_acp_goes_with_its_session(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "holdfast"
    write_roster(
        home,
        tmp_path / "project",
        f"    member: acp\n    program: {sys.executable}\n    arguments: [{acp_agent.__file__}]\n    gate: asks\n",
    )
    check_deletion(run, home, "recall")


async def test_f06_the_transcript_of_claude_goes_with_its_session(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "holdfast"
    write_roster(
        home,
        tmp_path / "project",
        f"    member: claude\n    program: {claude_program()}\n"
        "    environment: [ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, IS_SANDBOX]\n",
    )
    async with StubServer(respond) as stub:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "stub-key")
        await asyncio.to_thread(check_deletion, run, home, "what was said?")
