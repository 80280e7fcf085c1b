"""The languages of a session: code runs where it was asked to, each language keeps its state, and the model is told which one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Error, Ok
from holdfast.core.errors import InvalidInput
from holdfast.models import Prompt, Reply, ScriptedModel, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session

ALLOW = FixedPolicy(default="allow")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "home")
    yield runtime
    await runtime.close()


async def resumed(runtime: Runtime, session: Session) -> Session:
    await session.close()
    return await runtime.resume(session.id, policy=ALLOW, needs_model=False)


async def test_f18_code_runs_in_the_language_it_is_given_in(runtime: Runtime) -> None:
    session = await runtime.create(policy=ALLOW, needs_model=False)
    assert await session.execute("(+ 1 1)", language="lisp") == Ok(value=2)
    assert await session.execute("1 + 2", language="python") == Ok(value=3)
    assert await session.execute("1 + 3") == Ok(value=4)
    lisp = await runtime.create(policy=ALLOW, needs_model=False, sandbox="lisp")
    assert await lisp.execute("(+ 1 1)") == Ok(value=2)
    assert await lisp.execute("1 + 2", language="python") == Ok(value=3)


async def test_f18_a_language_that_no_sandbox_runs_is_refused_before_it_is_recorded(runtime: Runtime) -> None:
    session = await runtime.create(policy=ALLOW, needs_model=False)
    with pytest.raises(InvalidInput, match="cobol"):
        await session.execute("MOVE 1 TO A", language="cobol")
    assert session.history() == ()


async def test_f18_a_language_that_the_policy_forbids_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    policy = tmp_path / "python-only.yaml"
    policy.write_text("policy: python-only\nsandboxes: [python]\nrules: []\n")
    session = await runtime.create(policy=str(policy), needs_model=False)
    with pytest.raises(InvalidInput, match="allows code to run in python"):
        await session.execute("(+ 1 1)", language="lisp")


async def test_f19_each_language_keeps_its_state_when_another_runs(runtime: Runtime) -> None:
    session = await runtime.create(policy=ALLOW, needs_model=False, sandbox="lisp")
    await session.execute("(define kept 7) (assert '(colour sky blue))")
    assert await session.execute("kept = 8", language="python") == Ok(value=None)
    assert await session.execute("kept") == Ok(value=7)
    session = await resumed(runtime, session)
    assert await session.execute("kept + 1", language="python") == Ok(value=9)
    session = await resumed(runtime, session)
    assert await session.execute("(list kept (fact? '(colour sky blue)))") == Ok(value=[7, True])


async def test_f19_a_resumed_session_runs_in_its_own_sandbox(runtime: Runtime) -> None:
    session = await runtime.create(policy=ALLOW, needs_model=False, sandbox="lisp")
    session = await resumed(runtime, session)
    assert await session.execute("(+ 1 1)") == Ok(value=2)
    await session.close()
    session = await runtime.resume(session.id, policy=ALLOW, needs_model=False, sandbox="python")
    assert isinstance(await session.execute("(+ 1 1)"), Error)
    session = await resumed(runtime, session)
    assert await session.execute("1 + 1") == Ok(value=2), "the last choice is remembered"
    fork = await runtime.fork(session.id, at=1, policy=ALLOW, needs_model=False)
    assert await fork.execute("2 + 2") == Ok(value=4)


@pytest.mark.parametrize(("sandbox", "other"), [("lisp", "Python"), ("python", "Lisp")])
async def test_f20_the_model_is_told_the_language_of_the_sandbox(
    runtime: Runtime, sandbox: str, other: str
) -> None:
    heard: list[Prompt] = []
    code = {"lisp": "(+ 20 1)", "python": "20 + 1"}[sandbox]

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return use("execute_code", {"code": code}) if len(heard) == 1 else say("Done.")

    session = await runtime.create(
        model=ScriptedModel([listen, listen]), policy=ALLOW, sandbox="lisp" if sandbox == "lisp" else "python"
    )
    assert await session.send("count") == Ok(value="Done.")
    told = heard[0].system + str(heard[0].tools)
    assert sandbox in told.lower()
    assert other not in told
    assert "=> 21" in str(heard[1].messages[-1])
    assert ("(world/read path" in told) == (sandbox == "lisp")
