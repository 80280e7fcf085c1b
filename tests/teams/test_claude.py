"""The real claude program behind our driver, against the stub of the Messages API on this machine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.teams.brain import respond
from tests.teams.companies import company, roster
from tests.teams.installed import claude_program

from holdfast.core import Error, SystemClock
from holdfast.models.stub import StubServer
from holdfast.store import MemoryStore
from holdfast.teams import Roster


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer(respond) as server:
        yield server


def of_claude(project: Path, **settings: object) -> Roster:
    project.mkdir(exist_ok=True)
    return roster(
        "alpha",
        "beta",
        project=str(project),
        settings=settings,
        member="claude",
        program=claude_program(),
        environment=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "IS_SANDBOX"),
    )


def environ(stub: StubServer) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "stub-key"}


async def test_a_conversation_is_begun_kept_and_taken_up_again(tmp_path: Path, stub: StubServer) -> None:
    clock = SystemClock()
    store = MemoryStore(clock=clock)
    on = of_claude(tmp_path / "my_proj.x")
    async with company(tmp_path, on, store=store, clock=clock, environ=environ(stub)) as board:
        first = await board.ask("alpha", "beta", "the word is kelp")
        second = await board.ask("alpha", "beta", "think of it")
    assert (first.text, second.text) == ("echo[1]: the word is kelp", "thought: of it")
    assert first.usage.input_tokens > 0
    async with company(tmp_path, on, store=store, clock=clock, environ=environ(stub)) as board:
        reply = await board.ask("alpha", "beta", "recall")
        (line,) = await board.sessions()
    assert reply.text == 'recall: ["the word is kelp","think of it"]'
    assert (reply.generation, reply.notes, line.turns) == (1, (), 3)


async def test_a_provider_that_fails_is_an_error_and_not_an_answer(tmp_path: Path, stub: StubServer) -> None:
    async with company(
        tmp_path, of_claude(tmp_path / "p"), clock=SystemClock(), environ=environ(stub)
    ) as board:
        reply = await board.ask("alpha", "beta", "fail 403")
    assert isinstance(reply.outcome, Error)
    assert reply.text == ""
