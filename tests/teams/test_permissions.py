"""What a member may not do by itself waits for a person: cases K1 to K9."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_acp import of_parrots

from holdfast.core import Refused, Returned, SystemClock, Verdict
from holdfast.teams import Broker, OnCall, ScriptedProgram, TeamMessage


class Clerk:
    """A member that wants to edit a file, and what it was told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.heard: list[Returned | Refused] = []
        self.program = ScriptedProgram(self.answer, kind="claude")

    async def answer(self, message: TeamMessage, heard: object, on_call: OnCall) -> str:
        wish = {"file_path": str(self._folder / "a.txt"), "old_string": "", "new_string": message.text}
        told = await on_call("Edit", wish)  # type: ignore[arg-type]
        self.heard.append(told)
        return "edited" if isinstance(told, Returned) else told.reason


@asynccontextmanager
async def office(
    tmp_path: Path, verdict: Verdict, *, seconds: float = 60.0
) -> AsyncIterator[tuple[Broker, Clerk]]:
    clerk = Clerk(tmp_path)
    on = roster("alpha", "beta", project=str(tmp_path), settings={"approval_seconds": seconds})
    async with team_broker(
        tmp_path, on, clock=SystemClock(), program=clerk.program, verdicts={"claude.Edit": verdict}
    ) as broker:
        yield broker, clerk


async def waiting_request(tmp_path: Path) -> Path:
    """The file that asks a person."""
    async with asyncio.timeout(50):
        while True:
            found = list((tmp_path / "home").glob("sessions/*/escalations/request-*.json"))
            if found:
                return found[0]
            await asyncio.sleep(0.005)


def answer(request: Path, decision: str, *, id: str = "") -> Path:
    """A person's answer, as a file beside the request."""
    draft = request.with_name("draft")
    draft.write_text(json.dumps({"decision": decision}))
    return draft.rename(request.with_name(f"response-{id or request.stem.removeprefix('request-')}.json"))


async def test_k1_what_the_policy_allows_is_done(tmp_path: Path) -> None:
    async with office(tmp_path, "allow") as (broker, _):
        assert (await broker.ask("alpha", "beta", "x")).text == "edited"


async def test_k2_what_it_denies_is_not(tmp_path: Path) -> None:
    async with office(tmp_path, "deny") as (broker, _):
        assert (await broker.ask("alpha", "beta", "x")).text == "claude.Edit is fixed to deny"


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_k3_what_it_asks_about_a_person_decides(tmp_path: Path, decision: str) -> None:
    async with office(tmp_path, "escalate") as (broker, clerk):
        asking = asyncio.create_task(broker.ask("alpha", "beta", "x"))
        answer(await waiting_request(tmp_path), decision)
        reply = await asking
    assert (reply.text == "edited") == (decision == "approved")
    assert len(clerk.heard) == 1


async def test_k4_k8_silence_and_nobody_there_to_answer_are_a_no(tmp_path: Path) -> None:
    async with office(tmp_path, "escalate", seconds=0.05) as (broker, clerk):
        await broker.ask("alpha", "beta", "x")
    (told,) = clerk.heard
    assert isinstance(told, Refused)
    assert "time" in told.reason or "no answer" in told.reason


async def test_k5_k6_answers_to_what_nobody_asked_and_second_answers_change_nothing(tmp_path: Path) -> None:
    async with office(tmp_path, "escalate") as (broker, clerk):
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
    assert [type(each) for each in clerk.heard] == [Refused, Refused]


async def test_k7_what_waits_when_we_are_stopped_is_not_done(tmp_path: Path) -> None:
    async with office(tmp_path, "escalate") as (broker, clerk):
        asking = asyncio.create_task(broker.ask("alpha", "beta", "x"))
        request = await waiting_request(tmp_path)
    await asyncio.gather(asking, return_exceptions=True)
    assert clerk.heard == []
    assert not request.exists()


async def test_k9_a_question_outside_of_any_message_is_a_no(tmp_path: Path) -> None:
    async with team_broker(tmp_path, of_parrots(tmp_path / "p"), clock=SystemClock()) as broker:
        await broker.ask("alpha", "beta", f"late {tmp_path / 'p' / 'late.txt'}")
        async with asyncio.timeout(50):
            while not (found := list((tmp_path / "teams").glob("pairs/*/home/late"))):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert found[0].read_text() in ("denied", "cancelled")
    assert not (tmp_path / "p" / "late.txt").exists()
