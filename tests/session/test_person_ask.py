"""`person.ask`: the turn continues with the answer, in mid-line, now or later, from code or from a tool call."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Needs, Ok, Response, ToolMessage
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.testing import ScriptedTransport

POLICY = FixedPolicy(default="allow")
ASK = "colour = person.ask(question='Which colour?')\nf'paint it {colour}'"
ASKS = use("execute_code", {"code": ASK})
BLUE = Response(verdict="approve", reason="blue")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


def answered(prompt: Prompt) -> Reply:
    last = prompt.messages[-1]
    assert isinstance(last, ToolMessage)
    return say(f"I was told: {last.returns[0].content}")


async def opened(runtime: Runtime, *replies: ScriptedReply) -> Session:
    return await runtime.create(model=ScriptedModel(replies), policy=POLICY)


async def test_a_question_of_the_agent_is_a_needs_outcome(runtime: Runtime) -> None:
    session = await opened(runtime, ASKS, answered)
    outcome = await session.send("Paint the door.")
    [question] = session.escalations()
    assert outcome == Needs(need="clarification", description="Which colour?", context=[str(question.id)])
    assert session.activity == "waiting"


async def test_the_answer_is_returned_to_the_code_in_mid_line_and_the_turn_ends(runtime: Runtime) -> None:
    session = await opened(runtime, ASKS, answered)
    await session.send("Paint the door.")
    [question] = session.escalations()
    await session.resolve(question.id, BLUE)
    assert await session.advance() == Ok(value="I was told: => paint it blue")
    assert session.activity == "ready"


async def test_a_transport_asks_at_once(runtime: Runtime) -> None:
    session = await opened(runtime, ASKS, answered)
    transport = ScriptedTransport(["Paint the door."], [BLUE])
    await transport.run(session)
    assert transport.outcomes == [Ok(value="I was told: => paint it blue")]
    assert [each.call.operation for each in transport.asked] == ["person.ask"]


async def test_an_answer_after_a_restart_resumes_the_code_where_it_was(tmp_path: Path) -> None:
    before = await Runtime.start(home=tmp_path / "home")
    session = await opened(before, ASKS)
    await session.send("Paint the door.")
    await before.close()
    after = await Runtime.start(home=tmp_path / "home")
    again = await after.resume(session.id, model=ScriptedModel([ASKS, answered]), policy=POLICY)
    [question] = again.escalations()
    await again.resolve(question.id, BLUE)
    assert await again.advance() == Ok(value="I was told: => paint it blue")
    await after.close()


async def test_a_model_without_code_asks_by_a_tool_call(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings(acts_with="tools"))
    session = await opened(runtime, use("person__ask", {"question": "Which colour?"}), answered)
    transport = ScriptedTransport(["Paint the door."], [BLUE])
    await transport.run(session)
    assert transport.outcomes == [Ok(value="I was told: blue")]
    await runtime.close()


async def test_a_denial_is_a_refusal_and_not_an_invented_answer(runtime: Runtime) -> None:
    code = "try:\n    said = person.ask(question='Which colour?')\nexcept PermissionError:\n    said = 'nothing'\nsaid"
    session = await opened(runtime, use("execute_code", {"code": code}), answered)
    transport = ScriptedTransport(["Paint the door."], [Response(verdict="deny")])
    await transport.run(session)
    assert transport.outcomes == [Ok(value="I was told: => nothing")]


async def test_host_code_can_ask_two_questions_in_a_row(
    runtime: Runtime,
) -> None:
    session = await opened(runtime)
    asked: list[str] = []

    async def person(escalation: object) -> Response:
        question = escalation.call.arguments["question"]  # type: ignore[attr-defined]
        asked.append(question)
        return Response(verdict="approve", reason=f"answer {len(asked)}")

    session.approver = person
    code = "[person.ask(question='first?'), person.ask(question='second?')]"
    assert await session.execute(code) == Ok(value=["answer 1", "answer 2"])
    assert asked == ["first?", "second?"]


async def test_an_answer_for_the_whole_session_does_not_answer_the_same_question_again(
    runtime: Runtime,
) -> None:
    session = await opened(runtime, ASKS, answered, ASKS, answered)
    for colour in ("blue", "red"):
        await session.send("Paint the door.")
        [question] = session.escalations()
        await session.resolve(question.id, Response(verdict="approve", reason=colour, scope="session"))
        assert await session.advance() == Ok(value=f"I was told: => paint it {colour}")
