"""F10 to F13: a person's no in their own words, no expiry unless asked for, the first answer wins, questions get text."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.cli import main
from holdfast.core import FakeClock, Ok, Response, ToolMessage
from holdfast.core.errors import EscalationUnknown
from holdfast.core.events import EscalationAnswered
from holdfast.gate import answer_external, list_external_requests
from holdfast.models import Prompt, Reply, ScriptedModel, say, use
from holdfast.policy import FixedPolicy, RulePolicy, parse_policy_text
from holdfast.session import Session, Settings
from holdfast.testing import memory_session

ASKING = FixedPolicy(default="allow", verdicts={"world.delete": "escalate"})
DELETE = use("world__delete", {"path": "a.txt"})
QUESTION = use("execute_code", {"code": "person.ask(question='Which colour?')"})
A_YEAR_SECONDS = 365 * 86_400


def repeat_result(prompt: Prompt) -> Reply:
    """A model that says what it was told."""
    last = prompt.messages[-1]
    assert isinstance(last, ToolMessage)
    return say(last.returns[0].content)


@pytest.fixture
async def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


@pytest.mark.parametrize(
    ("reason", "heard"),
    [
        ("use staging instead", "the person denied it: use staging instead"),
        (None, "the person denied it. Continue without it, or ask what they want instead."),
    ],
)
async def test_f10_the_model_hears_a_no_in_the_words_of_the_person(reason: str | None, heard: str) -> None:
    settings = Settings(acts_with="tools")
    async with memory_session([DELETE, repeat_result], policy=ASKING, settings=settings) as session:
        await session.send("Remove it.")
        [escalation] = session.escalations()
        await session.resolve(escalation.id, Response(verdict="deny", reason=reason))
        assert await session.advance() == Ok(value=heard)


async def test_f11_a_call_waits_for_a_year_unless_someone_set_a_limit() -> None:
    clock = FakeClock()
    async with memory_session(
        [DELETE, "Gone."], policy=ASKING, settings=Settings(acts_with="tools"), clock=clock
    ) as session:
        await session.send("Remove it.")
        clock.advance(A_YEAR_SECONDS)
        [escalation] = session.escalations()
        assert escalation.expires_ms is None
        await session.resolve(escalation.id, Response(verdict="approve"))


@pytest.mark.parametrize(
    ("of_rule", "of_session", "left"), [(600, None, 600), (600, 60.0, 60), (None, 60.0, 60), (60, 600.0, 60)]
)
async def test_f11_a_rule_or_the_session_limits_how_long_a_call_waits(
    of_rule: int | None, of_session: float | None, left: int
) -> None:
    wait_for = "" if of_rule is None else f", wait_for: {of_rule}"
    policy = f"policy: p\nrules:\n  - {{name: ask, escalate: world.delete{wait_for}}}\n"
    clock = FakeClock()
    async with memory_session(
        [DELETE, repeat_result],
        policy=RulePolicy(parse_policy_text(policy, source="p.yaml")),
        settings=Settings(acts_with="tools", escalation_seconds=of_session),
        clock=clock,
    ) as session:
        await session.send("Remove it.")
        [escalation] = session.escalations()
        assert escalation.expires_ms == clock.now_ms() + left * 1000
        clock.advance(left)
        with pytest.raises(EscalationUnknown, match="too late"):
            await session.resolve(escalation.id, Response(verdict="approve"))
        assert "no one answered in time" in str(await session.advance())


async def test_f11_the_list_as_json_says_how_many_seconds_are_left(
    runtime: Runtime, capsys: pytest.CaptureFixture[str]
) -> None:
    await waiting_session(runtime, DELETE)
    policy = "policy: p\nrules:\n  - {name: ask, escalate: '*', wait_for: 600}\n"
    limited = await runtime.create(
        model=ScriptedModel([DELETE, repeat_result]),
        policy=RulePolicy(parse_policy_text(policy, source="p.yaml")),
    )
    await limited.send("Do it.")
    assert await run("waiting", "--json") == 0
    listed = {each["session"]: each["seconds_left"] for each in json.loads(capsys.readouterr().out)}
    assert 0 < listed.pop(limited.id) <= 600
    assert list(listed.values()) == [None]


async def waiting_session(runtime: Runtime, reply: Reply) -> Session:
    session = await runtime.create(model=ScriptedModel([reply, repeat_result]), policy=ASKING)
    await session.send("Do it.")
    return session


async def test_f11_the_list_shows_how_long_a_call_waits_and_no_process_holds_it(
    runtime: Runtime, capsys: pytest.CaptureFixture[str]
) -> None:
    session = await waiting_session(runtime, QUESTION)
    await session.close()
    await runtime.close()
    assert await run("waiting") == 0
    assert "until you answer" in capsys.readouterr().out


async def test_f13_a_question_is_answered_with_text_from_elsewhere(
    runtime: Runtime, capsys: pytest.CaptureFixture[str]
) -> None:
    session = await waiting_session(runtime, QUESTION)
    [question] = session.escalations()
    assert await run("approve") == 2
    assert f"holdfast answer {question.id} TEXT" in capsys.readouterr().err
    assert await run("answer", question.id, "sea green") == 0
    assert await session.advance() == Ok(value="=> sea green")


async def test_f13_a_question_by_file_has_the_question_and_takes_the_answer(
    runtime: Runtime, tmp_path: Path
) -> None:
    session = await waiting_session(runtime, QUESTION)
    answered = asyncio.Event()
    session.follow(lambda entry: answered.set() if isinstance(entry.event, EscalationAnswered) else None)
    [path] = (tmp_path / "home").glob("sessions/*/escalations/request-*.json")
    assert json.loads(path.read_text())["question"] == "Which colour?"
    response = {"decision": "approved", "answer": "sea green"}
    path.with_name(path.name.replace("request", "response")).write_text(json.dumps(response))
    await answered.wait()
    assert await session.advance() == Ok(value="=> sea green")


def test_f12_the_first_answer_wins_in_a_folder_and_keeps_its_reason(tmp_path: Path) -> None:
    request = {
        "escalationId": "a1",
        "serverName": "git",
        "toolName": "push",
        "arguments": {},
        "reason": "asks",
    }
    (tmp_path / "request-a1.json").write_text(json.dumps(request))
    [found] = list_external_requests(tmp_path)
    answer_external(tmp_path, found, is_approved=False, reason="not today")
    with pytest.raises(EscalationUnknown, match="the first answer counts"):
        answer_external(tmp_path, found, is_approved=True)
    answered = json.loads((tmp_path / "response-a1.json").read_text())
    assert answered == {"decision": "denied", "reason": "not today"}


async def run(*words: str) -> int:
    """Run a command in a thread, as another terminal would."""
    return await asyncio.to_thread(main, list(words))
