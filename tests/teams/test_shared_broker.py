"""Several processes use the same teams at once: one leads, the others join it, and one of them takes over."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from mcp.client.client import Client
from tests.support.fork_server import forked_python
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_serve import ServerHome, call

from holdfast.core import FakeClock, JsonObject
from holdfast.store import MemoryStore
from holdfast.teams import Broker, Caller, OnCall, ScriptedProgram, SharedBroker, TeamMessage
from holdfast.teams.server.shared_broker import LeaderLost

ALPHA = Caller(team="alpha")


@pytest.fixture
def server_home(tmp_path: Path) -> ServerHome:
    return ServerHome(tmp_path)


async def report_when_settled(client: Client) -> list[str]:
    async with asyncio.timeout(60):
        while True:
            messages = (await call(client, "teams_report", team="b"))["messages"]
            states = [each["state"] for each in messages]
            if not {"queued", "working"} & set(states):
                return states


async def test_f28_two_clients_of_one_team_use_the_same_awake_member(server_home: ServerHome) -> None:
    async with server_home.over_stdio("--from", "a") as second:
        async with server_home.over_stdio("--from", "a") as first:
            answers = [
                await call(client, "teams_ask", team="b", question="hi") for client in (first, second, first)
            ]
            assert [each.get("text") for each in answers] == ["echo[1]: hi", "echo[2]: hi", "echo[3]: hi"]
            for client in (first, second):
                sent = await call(
                    client, "teams_send_message", toTeam="b", message="hi", waitForResponse=False
                )
                assert sent.get("state", sent) in ("queued", "working", "answered")
            assert await report_when_settled(second) == ["answered"] * 5
            asked = await asyncio.create_subprocess_exec(
                *forked_python("-m", "holdfast", "teams", "ask", "b", "hi", "--from", "a"),
                stdout=asyncio.subprocess.PIPE,
                env=server_home.environment,
            )
            assert (await asked.communicate())[0] == b"echo[6]: hi\n"
        # Whichever of the two led, the one that is left answers.
        answered = await call(second, "teams_ask", team="b", question="still there")
        assert answered["status"] == "answered"
        await call(second, "teams_send_message", toTeam="b", message="hi", waitForResponse=False)
        assert set(await report_when_settled(second)) == {"answered"}


class Held:
    """A program that answers only when it is let go, and the broker over it."""

    def __init__(self, tmp_path: Path) -> None:
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self.folder = tmp_path / "teams"
        self._tmp_path = tmp_path
        self._store = MemoryStore(clock=FakeClock())
        self._program = ScriptedProgram(self._answer)
        (tmp_path / "p").mkdir()

    async def _answer(self, message: TeamMessage, received: Sequence[str], on_call: OnCall) -> str:
        self.asked.set()
        await self.let_go.wait()
        return f"answer to {message.text}"

    def lead(self) -> AbstractAsyncContextManager[Broker]:
        team_roster = roster("alpha", "beta", project=str(self._tmp_path / "p"))
        return team_broker(self._tmp_path, team_roster, program=self._program, store=self._store)

    def open(self) -> SharedBroker:
        return SharedBroker(self.folder, self.lead)


@pytest.fixture
async def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


async def test_f28_a_leader_that_ends_finishes_the_calls_of_others_first(held: Held) -> None:
    leader, joined = held.open(), held.open()
    await leader.__aenter__()
    async with joined:
        assert (leader.is_leader, joined.is_leader) == (True, False)
        question: JsonObject = {"team": "beta", "question": "kelp", "timeout": 0}
        asking = asyncio.create_task(joined.call(ALPHA, "teams_ask", question))
        await held.asked.wait()
        ending = asyncio.create_task(leader.__aexit__(None, None, None))
        held.let_go.set()
        answer = await asking
        assert isinstance(answer.content, dict)
        assert answer.content["text"] == "answer to kelp"
        sent: JsonObject = {"toTeam": "beta", "message": "more", "waitForResponse": False}
        assert not (await joined.call(ALPHA, "teams_send_message", sent)).is_error
        await ending
        again = await joined.call(ALPHA, "teams_ask", question)
        assert not again.is_error
        assert joined.is_leader


async def test_f28_a_call_is_repeated_with_the_next_leader_only_if_that_is_harmless(held: Held) -> None:
    leader, joined = held.open(), held.open()
    await leader.__aenter__()
    async with joined:
        question: JsonObject = {"team": "beta", "question": "kelp", "timeout": 0}
        asking = asyncio.create_task(joined.call(ALPHA, "teams_ask", question))
        await held.asked.wait()
        await leader.__aexit__(KeyboardInterrupt, None, None)
        answer = await asking
        assert isinstance(answer.content, dict)
        # The turn was interrupted and recorded as such; it did not run twice.
        assert answer.content["status"] == "failed"
        held.let_go.set()
        other = await joined.call(ALPHA, "teams_ask", {"team": "beta", "question": "next", "timeout": 0})
        assert isinstance(other.content, dict)
        assert other.content["text"] == "answer to next"


async def test_an_answer_that_is_too_long_for_another_process_is_an_error(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held.open(), held.open() as joined:
        held.let_go.set()
        question: JsonObject = {"team": "beta", "question": "k" * 500, "timeout": 0}
        monkeypatch.setattr("holdfast.teams.server.shared_broker.MAX_BYTES", 700)
        answer = await joined.call(ALPHA, "teams_ask", question)
        assert answer.is_error
        assert isinstance(answer.content, dict)
        assert "between processes it may have 700" in str(answer.content["error"])


async def test_f28_a_call_whose_process_ends_is_cancelled(held: Held) -> None:
    async with held.open() as leader:
        joined = held.open()
        await joined.__aenter__()
        asking = asyncio.create_task(
            joined.call(ALPHA, "teams_ask", {"team": "beta", "question": "kelp", "timeout": 0})
        )
        await held.asked.wait()
        asking.cancel()
        await asyncio.wait({asking})
        await joined.__aexit__(None, None, None)
        held.let_go.set()
        after = await leader.call(ALPHA, "teams_ask", {"team": "beta", "question": "next", "timeout": 0})
        assert isinstance(after.content, dict)
        assert after.content["text"] == "answer to next"


async def test_f28_a_broker_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    def lead() -> AbstractAsyncContextManager[Broker]:
        raise LeaderLost("no disk")

    with pytest.raises(LeaderLost, match="no disk"):
        async with SharedBroker(tmp_path / ("long-" * 40), lead):
            pass
