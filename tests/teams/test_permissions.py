"""Calls of a member that need a person's approval: cases K1 to K9."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import acp_roster

from holdfast.core import Refused, Returned, SystemClock, Verdict
from holdfast.teams import Broker, OnCall, ScriptedProgram, TeamMessage


class Editor:
    """A member that wants to edit a file, and the answers it got."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.answers: list[Returned | Refused] = []
        self.program = ScriptedProgram(self.answer, kind="claude")

    async def answer(self, message: TeamMessage, received: object, on_call: OnCall) -> str:
        arguments = {"file_path": str(self._folder / "a.txt"), "old_string": "", "new_string": message.text}
        answer_of_gate = await on_call("Edit", arguments)  # type: ignore[arg-type]
        self.answers.append(answer_of_gate)
        return "edited" if isinstance(answer_of_gate, Returned) else answer_of_gate.reason


@asynccontextmanager
async def editing_team(
    tmp_path: Path, verdict: Verdict, *, seconds: float = 60.0
) -> AsyncIterator[tuple[Broker, Editor]]:
    editor = Editor(tmp_path)
    team_roster = roster("alpha", "beta", project=str(tmp_path), settings={"approval_seconds": seconds})
    async with team_broker(
        tmp_path, team_roster, clock=SystemClock(), program=editor.program, verdicts={"claude.Edit": verdict}
    ) as broker:
        yield broker, editor


async def waiting_request(tmp_path: Path) -> Path:
    """The file that requests an approval."""
    async with asyncio.timeout(60):
        while True:
            found = list((tmp_path / "home").glob("sessions/*/escalations/request-*.json"))
            if found:
                return found[0]
            await asyncio.sleep(0.005)


def answer(request: Path, decision: str, *, id: str = "") -> Path:
    """Write a person's answer beside the request."""
    draft = request.with_name("draft")
    draft.write_text(json.dumps({"decision": decision}))
    return draft.rename(request.with_name(f"response-{id or request.stem.removeprefix('request-')}.json"))


async def test_k1_an_allowed_call_runs(tmp_path: Path) -> None:
    async with editing_team(tmp_path, "allow") as (broker, _):
        assert (await broker.ask("alpha", "beta", "x")).text == "edited"


async def test_k2_a_denied_call_does_not_run(tmp_path: Path) -> None:
    async with editing_team(tmp_path, "deny") as (broker, _):
        assert (await broker.ask("alpha", "beta", "x")).text == "claude.Edit is fixed to deny"


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_k3_a_person_decides_an_escalated_call(tmp_path: Path, decision: str) -> None:
    async with editing_team(tmp_path, "escalate") as (broker, editor):
        asking = asyncio.create_task(broker.ask("alpha", "beta", "x"))
        answer(await waiting_request(tmp_path), decision)
        reply = await asking
    assert (reply.text == "edited") == (decision == "approved")
    assert len(editor.answers) == 1


async def test_k4_k8_a_call_without_an_answer_is_denied(tmp_path: Path) -> None:
    async with editing_team(tmp_path, "escalate", seconds=0.05) as (broker, editor):
        await broker.ask("alpha", "beta", "x")
    (answer_of_gate,) = editor.answers
    assert isinstance(answer_of_gate, Refused)
    assert "time" in answer_of_gate.reason or "no answer" in answer_of_gate.reason


async def test_k5_k6_stray_and_second_answers_change_nothing(tmp_path: Path) -> None:
    async with editing_team(tmp_path, "escalate") as (broker, editor):
        asking = asyncio.create_task(broker.ask("alpha", "beta", "x"))
        request = await waiting_request(tmp_path)
        answer(request, "approved", id="phantom00001")
        answer(request, "denied")
        await asking
        answer(request, "approved")
        again = asyncio.create_task(broker.ask("alpha", "beta", "y"))
        second = await waiting_request(tmp_path)
        assert second != request
        answer(second, "denied")
        await again
    assert [type(each) for each in editor.answers] == [Refused, Refused]


async def test_k7_a_call_that_waits_at_shutdown_does_not_run(tmp_path: Path) -> None:
    async with editing_team(tmp_path, "escalate") as (broker, editor):
        asking = asyncio.create_task(broker.ask("alpha", "beta", "x"))
        request = await waiting_request(tmp_path)
    await asyncio.gather(asking, return_exceptions=True)
    assert editor.answers == []
    assert not request.exists()


async def test_k9_a_call_outside_any_message_is_denied(tmp_path: Path) -> None:
    async with team_broker(tmp_path, acp_roster(tmp_path / "p"), clock=SystemClock()) as broker:
        await broker.ask("alpha", "beta", f"late {tmp_path / 'p' / 'late.txt'}")
        async with asyncio.timeout(60):
            while not (found := list((tmp_path / "teams").glob("pairs/*/home/late"))):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert found[0].read_text() in ("denied", "cancelled")
    assert not (tmp_path / "p" / "late.txt").exists()
