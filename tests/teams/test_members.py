"""The contract of members, for every kind: scripted, Holdfast session, claude, a small ACP agent, and goose."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.goose_program import goose_program, goose_roster
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import acp_roster
from tests.teams.test_claude import claude_roster, environ

from holdfast.core import Error, Ok, SystemClock
from holdfast.store import MemoryStore
from holdfast.teams import Broker, OnCall, Roster, ScriptedProgram, TeamMessage, echo

REAL = [pytest.param(kind, marks=pytest.mark.soak) for kind in ("claude", "goose")]
KINDS = ("scripted", "holdfast", "acp", *REAL)
"""`test_claude` and `test_goose` run the real programs in the short form."""
MESSAGE = "550e8400-e29b-41d4-a716-446655440000"


class TeamsOfOneKind:
    """Teams of one kind of member. Opened again, they find their conversations."""

    def __init__(self, kind: str, tmp_path: Path, stub: StubServer) -> None:
        self.kind = kind
        self._folder = tmp_path
        self._stub = stub
        self._clock = SystemClock()
        self._store = MemoryStore(clock=self._clock)
        self._program = ScriptedProgram(self._answer)
        self._is_hanging = asyncio.Event()
        self._roster = self._made(kind, tmp_path / "p")

    def open(self) -> AbstractAsyncContextManager[Broker]:
        return team_broker(
            self._folder,
            self._roster,
            program=self._program,
            store=self._store,
            clock=self._clock,
            environ=environ(self._stub),
            hanging=self._is_hanging,
        )

    async def hanging(self) -> None:
        """Wait until the member has started a turn that does not end."""
        waited = [self._is_hanging.wait(), self._stub.hanging.wait(), self._file()]
        tasks = [asyncio.ensure_future(each) for each in waited]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _file(self) -> None:
        while not list((self._folder / "teams").glob("pairs/*/home/hanging")):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)

    async def _answer(self, message: TeamMessage, received: Sequence[str], on_call: OnCall) -> str:
        if message.text == "hang":
            self._is_hanging.set()
            await asyncio.get_running_loop().create_future()
        return await echo(message, received, on_call)

    def _made(self, kind: str, project: Path) -> Roster:
        project.mkdir(exist_ok=True)
        match kind:
            case "claude":
                return claude_roster(project)
            case "acp":
                return acp_roster(project)
            case "goose":
                return goose_roster(project, self._stub)
            case _:
                return roster("alpha", "beta", project=str(project), member=kind)


@pytest.fixture(params=KINDS)
async def teams(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TeamsOfOneKind]:
    if request.param == "claude":
        claude_program()
    if request.param == "goose":
        goose_program()
    async with StubServer(respond) as stub:
        yield TeamsOfOneKind(request.param, tmp_path, stub)


async def test_messages_are_answered_in_order_and_counted(teams: TeamsOfOneKind) -> None:
    async with teams.open() as broker:
        replies = await asyncio.gather(*(broker.ask("alpha", "beta", f"m{n}") for n in range(6)))
        (line,) = await broker.sessions()
    assert [reply.text for reply in replies] == [f"echo[{n + 1}]: m{n}" for n in range(6)]
    assert all(isinstance(reply.outcome, Ok) for reply in replies)
    assert line.turns == 6


async def test_a_conversation_survives_sleep_and_restart(teams: TeamsOfOneKind) -> None:
    async with teams.open() as broker:
        await broker.ask("alpha", "beta", "one")
        assert await broker.sleep("alpha", "beta")
        assert not await broker.sleep("alpha", "beta")
        await broker.ask("alpha", "beta", "two")
    async with teams.open() as broker:
        reply = await broker.ask("alpha", "beta", "recall")
    assert reply.text == 'recall: ["one","two"]'
    assert (reply.generation, reply.notes) == (1, ())


async def test_the_same_message_twice_runs_one_turn_even_after_a_restart(teams: TeamsOfOneKind) -> None:
    async with teams.open() as broker:
        first = await broker.ask("alpha", "beta", "once", message_id=MESSAGE)
    async with teams.open() as broker:
        second = await broker.ask("alpha", "beta", "once", message_id=MESSAGE.upper())
        (line,) = await broker.sessions()
    assert first.text == second.text == "echo[1]: once"
    assert line.turns == 1


async def test_nothing_of_one_pair_reaches_another(teams: TeamsOfOneKind) -> None:
    pairs = [("alpha", "beta", ""), ("beta", "alpha", ""), ("external", "beta", ""), ("alpha", "beta", "two")]
    async with teams.open() as broker:
        await asyncio.gather(*(broker.ask(a, b, f"secret {a}{t}", thread=t) for a, b, t in pairs))
        replies = await asyncio.gather(*(broker.ask(a, b, "recall", thread=t) for a, b, t in pairs))
    assert [reply.text for reply in replies] == [f'recall: ["secret {a}{t}"]' for a, _, t in pairs]


async def test_a_notice_arrives_with_the_next_message(teams: TeamsOfOneKind) -> None:
    async with teams.open() as broker:
        await broker.notify("alpha", "beta", "the build is green")
        await broker.ask("alpha", "beta", "hello")
        (notice,) = await broker.notices("alpha", "beta")
        history = await broker.history(broker.roster.pair("alpha", "beta"))
    assert notice.delivered_with == history.turns[0].message_id
    assert history.turns[0].text == "hello"


async def test_a_member_answers_the_next_message_after_a_cancelled_one(
    teams: TeamsOfOneKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.acp.connection.INTERRUPT_SECONDS", 0.5)
    async with teams.open() as broker:
        asking = asyncio.create_task(broker.ask("alpha", "beta", "hang"))
        await teams.hanging()
        assert await broker.cancel("alpha", "beta")
        cancelled = await asking
        after = await broker.ask("alpha", "beta", "there?")
        assert set(broker.pool.states().values()) == {"idle"}
    assert isinstance(cancelled.outcome, Error)
    assert cancelled.outcome.code == "cancelled"
    assert after.text.endswith("there?")


async def test_a_fork_continues_the_conversation_and_leaves_the_original_unchanged(
    teams: TeamsOfOneKind,
) -> None:
    async with teams.open() as broker:
        await broker.ask("alpha", "beta", "common")
        await broker.fork("alpha", "beta", "branch")
        await broker.ask("alpha", "beta", "aside", thread="branch")
        trunk = await broker.ask("alpha", "beta", "recall")
        branch = await broker.ask("alpha", "beta", "recall", thread="branch")
    assert trunk.text == 'recall: ["common"]'
    assert branch.text == 'recall: ["common","aside"]'
