"""Replay: recorded turns run again without a model and without effects, and differences are reported."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from holdfast.app import Runtime
from holdfast.core import Escalation, FakeClock, FunctionToolset, Response, Tool
from holdfast.core.events import CallIntended, Event, RecordedEvent, RunEnded, RunStarted
from holdfast.guests import python_engine
from holdfast.models import ScriptedModel, ScriptedReply, use
from holdfast.policy import FixedPolicy
from holdfast.session import ASK_PERSON, VIEW_TOOLS, Replay, replay
from holdfast.world import WORLD_TOOLS

POLICY = FixedPolicy(default="allow", verdicts={"world.delete": "deny", "world.move": "escalate"})
MAIL = Tool(
    name="mail.send", parameters={"type": "object", "properties": {"to": {"type": "string"}}}, roles={}
)
CODE = (
    "n = 1\nopen('a.txt', 'w').write('one')",
    "import os, random, datetime\nprint(n, random.random(), datetime.datetime.now())\nopen('a.txt').read()",
    "try:\n    os.remove('a.txt')\nexcept PermissionError as error:\n    print(error)",
    "os.rename('a.txt', 'b.txt')\nprint('moved')\nmail.send(to='one')",
    "n = 2\n1 / 0",
    "n = 3\n'x' * (1 << 30)",
    "print(n)\n'x' * 200_000",
)


async def approve(escalation: Escalation) -> Response:
    return Response(verdict="approve")


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[list[RecordedEvent]]:
    runtime = await Runtime.start(home=tmp_path / "home", clock=FakeClock())
    mail = FunctionToolset({MAIL.name: (MAIL, lambda _: "sent")})
    replies: list[ScriptedReply] = [*(use("execute_code", {"code": code}) for code in CODE), "Done."]
    session = await runtime.create(
        model=ScriptedModel(replies), policy=POLICY, toolsets=[mail], approver=approve
    )
    await session.send("go")
    yield list(await runtime.store.read(session.id))
    await runtime.close()


async def again(recorded: list[RecordedEvent]) -> Replay:
    engine = python_engine(key=b"k" * 32)
    try:
        return await replay(recorded, guest=engine.guest(), tools=(*WORLD_TOOLS, ASK_PERSON, *VIEW_TOOLS))
    finally:
        await engine.close()


def changed(recorded: list[RecordedEvent], change: Callable[[Event], Event]) -> list[RecordedEvent]:
    return [msgspec.structs.replace(entry, event=change(entry.event)) for entry in recorded]


async def test_a_recorded_turn_runs_again_to_the_same_end(recorded: list[RecordedEvent]) -> None:
    statuses = [entry.event.status for entry in recorded if isinstance(entry.event, RunEnded)]
    assert statuses == ["ok", "ok", "ok", "ok", "error", "limit", "ok"]
    report = await again(recorded)
    assert report.divergences == ()
    assert (report.runs, report.skipped) == (len(CODE), 0)


async def test_other_code_is_reported_where_it_first_differs(recorded: list[RecordedEvent]) -> None:
    def another(event: Event) -> Event:
        if isinstance(event, RunStarted) and event.run == 4:
            return msgspec.structs.replace(event, code=event.code.replace("'one'", "'two'"))
        return event

    report = await again(changed(recorded, another))
    assert [(each.turn, each.run) for each in report.divergences] == [(1, 4)]
    assert "mail.send" in report.divergences[0].what


async def test_another_value_another_print_and_a_missing_call_are_reported(
    recorded: list[RecordedEvent],
) -> None:
    def another(event: Event) -> Event:
        if isinstance(event, RunEnded) and event.run == 1:
            return msgspec.structs.replace(event, value="another")
        if isinstance(event, RunEnded) and event.run == 2:
            return msgspec.structs.replace(event, printed="another")
        if isinstance(event, RunStarted) and event.run == 4:
            return msgspec.structs.replace(event, code="print('moved')")
        return event

    report = await again(changed(recorded, another))
    assert [each.run for each in report.divergences] == [1, 2, 4]
    assert "calls fewer" in report.divergences[2].what


async def test_runs_of_another_engine_are_skipped_and_counted(recorded: list[RecordedEvent]) -> None:
    def another(event: Event) -> Event:
        if isinstance(event, RunStarted) and event.run == 1:
            return msgspec.structs.replace(event, engine="wasi")
        return event

    report = await again(changed(recorded, another))
    assert report.skipped == len(CODE), "what follows from a run that was not made again cannot be either"
    assert report.divergences == ()


async def test_nothing_is_performed_and_nothing_written(
    recorded: list[RecordedEvent], tmp_path: Path
) -> None:
    before = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    sent = sum(isinstance(entry.event, CallIntended) for entry in recorded)
    await again(recorded)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == before
    assert sum(isinstance(entry.event, CallIntended) for entry in recorded) == sent
