"""One contract, every member: scripted, our own sessions, the claude program, an agent over ACP, and goose over ACP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.goose_program import goose_program, of_goose
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import of_parrots
from tests.teams.test_claude import environ, of_claude

from holdfast.core import Error, Ok, SystemClock
from holdfast.store import MemoryStore
from holdfast.teams import Broker, OnCall, Roster, ScriptedProgram, TeamMessage, echo

KINDS = ("scripted", "holdfast", "claude", "acp", "goose")
MESSAGE = "550e8400-e29b-41d4-a716-446655440000"


class Firm:
    """Teams of one kind of member; opened more than once, they find what they had."""

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
        """Until the member has begun a turn that does not end."""
        waited = [self._is_hanging.wait(), self._stub.hanging.wait(), self._file()]
        tasks = [asyncio.ensure_future(each) for each in waited]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _file(self) -> None:
        while not list((self._folder / "teams").glob("pairs/*/home/hanging")):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)

    async def _answer(self, message: TeamMessage, heard: Sequence[str], on_call: OnCall) -> str:
        if message.text == "hang":
            self._is_hanging.set()
            await asyncio.get_running_loop().create_future()
        return await echo(message, heard, on_call)

    def _made(self, kind: str, project: Path) -> Roster:
        project.mkdir(exist_ok=True)
        match kind:
            case "claude":
                return of_claude(project)
            case "acp":
                return of_parrots(project)
            case "goose":
                return of_goose(project, self._stub)
            case _:
                return roster("alpha", "beta", project=str(project), member=kind)


@pytest.fixture(params=KINDS)
async def firm(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Firm]:
    if request.param == "claude":
        claude_program()
    if request.param == "goose":
        goose_program()
    async with StubServer(respond) as stub:
        yield Firm(request.param, tmp_path, stub)


async def test_letters_are_answered_one_after_the_other_and_counted(firm: Firm) -> None:
    async with firm.open() as broker:
        replies = await asyncio.gather(*(broker.ask("alpha", "beta", f"m{n}") for n in range(3)))
        (line,) = await broker.sessions()
    assert [reply.text for reply in replies] == [f"echo[{n + 1}]: m{n}" for n in range(3)]
    assert all(isinstance(reply.outcome, Ok) for reply in replies)
    assert line.turns == 3


async def test_what_was_said_is_known_after_sleep_and_after_a_restart(firm: Firm) -> None:
    async with firm.open() as broker:
        await broker.ask("alpha", "beta", "one")
        assert await broker.sleep("alpha", "beta")
        assert not await broker.sleep("alpha", "beta")
        await broker.ask("alpha", "beta", "two")
    async with firm.open() as broker:
        reply = await broker.ask("alpha", "beta", "recall")
    assert reply.text == 'recall: ["one","two"]'
    assert (reply.generation, reply.notes) == (1, ())


async def test_the_same_letter_twice_is_one_turn_also_after_a_restart(firm: Firm) -> None:
    async with firm.open() as broker:
        first = await broker.ask("alpha", "beta", "once", message_id=MESSAGE)
    async with firm.open() as broker:
        second = await broker.ask("alpha", "beta", "once", message_id=MESSAGE.upper())
        (line,) = await broker.sessions()
    assert first.text == second.text == "echo[1]: once"
    assert line.turns == 1


async def test_nothing_of_one_pair_reaches_another(firm: Firm) -> None:
    pairs = [("alpha", "beta", ""), ("beta", "alpha", ""), ("external", "beta", ""), ("alpha", "beta", "two")]
    async with firm.open() as broker:
        await asyncio.gather(*(broker.ask(a, b, f"secret {a}{t}", thread=t) for a, b, t in pairs))
        replies = await asyncio.gather(*(broker.ask(a, b, "recall", thread=t) for a, b, t in pairs))
    assert [reply.text for reply in replies] == [f'recall: ["secret {a}{t}"]' for a, _, t in pairs]


async def test_word_that_was_left_comes_with_the_next_letter(firm: Firm) -> None:
    async with firm.open() as broker:
        await broker.notify("alpha", "beta", "the build is green")
        await broker.ask("alpha", "beta", "hello")
        (notice,) = await broker.notices("alpha", "beta")
        said = await broker.history(broker.roster.pair("alpha", "beta"))
    assert notice.delivered_with == said.turns[0].message_id
    assert said.turns[0].text == "hello"


async def test_a_cancelled_letter_leaves_the_member_fit_for_the_next(
    firm: Firm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.acp.connection.INTERRUPT_SECONDS", 0.5)
    async with firm.open() as broker:
        asking = asyncio.create_task(broker.ask("alpha", "beta", "hang"))
        await firm.hanging()
        assert await broker.cancel("alpha", "beta")
        cancelled = await asking
        after = await broker.ask("alpha", "beta", "there?")
    assert isinstance(cancelled.outcome, Error)
    assert cancelled.outcome.code == "cancelled"
    assert after.text.endswith("there?")


async def test_a_branch_goes_on_from_where_it_was_forked_and_leaves_the_trunk_alone(firm: Firm) -> None:
    async with firm.open() as broker:
        await broker.ask("alpha", "beta", "common")
        await broker.fork("alpha", "beta", "branch")
        await broker.ask("alpha", "beta", "aside", thread="branch")
        trunk = await broker.ask("alpha", "beta", "recall")
        branch = await broker.ask("alpha", "beta", "recall", thread="branch")
    assert trunk.text == 'recall: ["common"]'
    assert branch.text == 'recall: ["common","aside"]'
