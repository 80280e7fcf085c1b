"""The contract of a session, over a real runtime with its own data directory."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Error, Escalation, EscalationId, FakeClock, Needs, Ok, Response
from holdfast.core.errors import EscalationUnknown, ModelUnavailable, SessionIsClosed, SessionNotReady
from holdfast.core.events import EscalationAnswered, EscalationOpened, Noted, RecordedEvent
from holdfast.mcp import ServerSpec
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session
from holdfast.session.status import MAX_NOTES

ASKS = FixedPolicy(default="allow", verdicts={"world.delete": "escalate"})
DELETE = use("execute_code", {"code": "open('a.txt', 'w').write('a')\nworld.delete(path='a.txt')"})


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock())
    yield started
    await started.close()


async def opened(runtime: Runtime, *replies: ScriptedReply) -> Session:
    return await runtime.create(model=ScriptedModel(replies), policy=ASKS)


async def request_of(folder: Path) -> dict[str, object]:
    [path] = folder.glob("request-*.json")
    request: dict[str, object] = json.loads(path.read_text())
    return request


# -- session unit tests


async def test_a_session_is_ready_then_processing_then_ready_then_closed(runtime: Runtime) -> None:
    seen: list[str] = []

    def look(prompt: Prompt) -> Reply:
        seen.append(session.activity)
        return use("execute_code", {"code": "1"})

    session = await opened(runtime, look, "Done.")
    assert (session.activity, session.is_closed) == ("ready", False)
    await session.send("Hi")
    assert seen == ["processing"]
    assert session.activity == "ready"
    await session.close()
    assert session.is_closed
    assert session not in runtime.live_sessions.all()


async def test_a_session_initializes_while_its_servers_start(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home", servers=[ServerSpec(name="gone", command="false")])
    opening = asyncio.create_task(runtime.create(needs_model=False, policy=ASKS))
    while not runtime.live_sessions.all() and not opening.done():  # noqa: ASYNC110 - nothing tells of it earlier
        await asyncio.sleep(0)
    [live] = runtime.live_sessions.all()
    assert live.activity == "initializing"
    with pytest.raises(SessionNotReady):
        await live.execute("1")
    session = await opening
    assert session.activity == "ready"
    assert [note.code for note in session.diagnostics()] == ["server-failed"]
    await runtime.close()


async def test_a_message_during_a_turn_is_refused(runtime: Runtime) -> None:
    session = await opened(runtime, DELETE, "Done.")
    asked = asyncio.Event()
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    async def approver(escalation: Escalation) -> Response:
        asked.set()
        return await answer

    session.approver = approver
    turn = asyncio.create_task(session.send("Delete it."))
    await asked.wait()
    with pytest.raises(SessionNotReady):
        await session.send("Another")
    answer.set_result(Response(verdict="approve"))
    assert await turn == Ok(value="Done.")


async def test_a_message_after_closing_is_refused(runtime: Runtime) -> None:
    session = await opened(runtime, "Hello.")
    await session.close()
    with pytest.raises(SessionIsClosed):
        await session.send("Hi")


async def test_closing_twice_is_closing_once(runtime: Runtime) -> None:
    session = await opened(runtime, "Hello.")
    await session.close()
    await session.close()


async def test_the_history_has_turns_in_order_with_their_numbers(runtime: Runtime) -> None:
    session = await opened(runtime, "One.", "Two.", "Three.")
    for text in ("a", "b", "c"):
        await session.send(text)
    assert [(turn.number, turn.asked) for turn in session.history()] == [(1, "a"), (2, "b"), (3, "c")]


async def test_an_error_of_the_model_leaves_the_session_ready(runtime: Runtime) -> None:
    def fails(prompt: Prompt) -> Reply:
        if len(prompt.messages) == 1:
            raise ModelUnavailable("the model is away")
        return say("Back.")

    session = await opened(runtime, fails)
    outcome = await session.send("Hi")
    assert isinstance(outcome, Error)
    assert outcome.code == "model-unavailable"
    assert session.activity == "ready"
    assert await session.send("Again") == Ok(value="Back.")


async def test_each_session_has_its_own_audit_file(runtime: Runtime) -> None:
    session = await opened(runtime, use("execute_code", {"code": "open('a.txt', 'w').write('a')"}), "Done.")
    await session.send("Write it.")
    lines = [json.loads(line) for line in runtime.home.audit(session.id).read_text().splitlines()]
    assert runtime.home.audit(session.id) == runtime.home.root / "sessions" / session.id / "audit.jsonl"
    assert "world.write" in [line["operation"] for line in lines]


async def test_the_folders_of_a_session_are_there_from_the_start(runtime: Runtime) -> None:
    session = await opened(runtime, "Hello.")
    folder = runtime.home.session_folder(session.id)
    assert {"workspace", "escalations"} <= {path.name for path in folder.iterdir()}
    assert runtime.home.escalations(session.id).is_dir()
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_an_answer_through_the_session_removes_the_request_file(runtime: Runtime) -> None:
    session = await opened(runtime, DELETE, "Done.")
    assert isinstance(await session.send("Delete it."), Needs)
    folder = runtime.home.escalations(session.id)
    [escalation] = session.escalations()
    assert [path.name for path in folder.iterdir()] == [f"request-{escalation.id}.json"]
    await session.resolve(escalation.id, Response(verdict="approve"))
    assert list(folder.iterdir()) == []
    assert await session.advance() == Ok(value="Done.")


async def test_an_answer_to_an_unknown_escalation_is_refused(runtime: Runtime) -> None:
    session = await opened(runtime, "Hello.")
    with pytest.raises(EscalationUnknown):
        await session.resolve(EscalationId("nobody"), Response(verdict="approve"))


async def test_diagnostics_accumulate_across_turns(runtime: Runtime) -> None:
    session = await opened(runtime, "One.", "Two.")
    await session.send("a")
    await session.note("first", "something")
    await session.send("b")
    await session.note("second", "something else")
    assert [note.code for note in session.diagnostics()] == ["", "first", "", "second"]


async def test_only_the_newest_diagnostics_are_kept_in_memory_and_all_are_recorded(
    runtime: Runtime,
) -> None:
    session = await opened(runtime)
    await session._journal.append(*(Noted(code=str(number), text="") for number in range(MAX_NOTES + 5)))
    kept = [int(note.code) for note in session.diagnostics()]
    assert kept == list(range(5, MAX_NOTES + 5))
    assert sum(isinstance(each.event, Noted) for each in session._journal.recorded) == MAX_NOTES + 5


# -- escalations by file


async def test_an_escalation_appears_as_a_file_and_in_the_status(runtime: Runtime) -> None:
    session = await opened(runtime, DELETE, "Done.")
    heard: list[RecordedEvent] = []
    session.follow(heard.append)
    await session.send("Delete it.")
    request = await request_of(runtime.home.escalations(session.id))
    [escalation] = session.escalations()
    assert [e.event.escalation.id for e in heard if isinstance(e.event, EscalationOpened)] == [escalation.id]
    assert {"escalationId", "serverName", "toolName", "arguments", "reason"} <= request.keys()
    assert request["escalationId"] == escalation.id
    assert (request["serverName"], request["toolName"]) == ("world", "delete")
    assert request["arguments"] == {"path": "a.txt"}


@pytest.mark.parametrize(("decision", "is_there"), [("approved", False), ("denied", True)])
async def test_an_answer_by_file_continues_the_turn(runtime: Runtime, decision: str, is_there: bool) -> None:
    session = await opened(runtime, DELETE, "Done.")
    answered = asyncio.Event()

    def hear(entry: RecordedEvent) -> None:
        if isinstance(entry.event, EscalationAnswered):
            answered.set()

    session.follow(hear)
    await session.send("Delete it.")
    folder = runtime.home.escalations(session.id)
    id = (await request_of(folder))["escalationId"]
    beside = folder / "answer"
    beside.write_text(json.dumps({"decision": decision}))
    beside.rename(folder / f"response-{id}.json")
    await asyncio.wait_for(answered.wait(), 60)
    assert await session.advance() == Ok(value="Done.")
    assert session.workspace.exists("a.txt") is is_there
    assert list(folder.iterdir()) == [], "question and answer are taken away"
