"""Code that asks its person waits in the middle of a line, holds no process, and resumes in another one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.guests.ask_main import take_step
from tests.guests.engines import KEY
from tests.guests.test_python_guest import worker_pids
from tests.support.fork_server import forked_python

from holdfast.core import Needs, Ok, Response
from holdfast.guests import python_engine
from holdfast.guests.lisp import lisp_engine
from holdfast.policy import FixedPolicy
from holdfast.testing import memory_session

ASKS = """
before = 'painted '
world.write(path='log.txt', content='once')
colours = before + person.ask(question='Which colour?') + ' and ' + person.ask(question='And then?')
colours + ', ' + world.read(path='log.txt')
"""
ASKS_IN_LISP = """
(define before "painted ")
(world/write "log.txt" "once")
(string-append before (call "person.ask" :question "Which colour?") " and "
               (call "person.ask" :question "And then?") ", " (world/read "log.txt"))
"""
PAINTED = "painted blue and green, once"
CALLS = ["world.write", "person.ask", "person.ask", "world.read"]


@pytest.mark.parametrize(
    ("engine", "code"), [(python_engine, ASKS), (lisp_engine, ASKS_IN_LISP)], ids=["python", "lisp"]
)
async def test_code_resumes_in_mid_line_with_the_answer(engine: Any, code: str) -> None:
    async with memory_session(engine=engine(key=KEY), policy=FixedPolicy(default="allow")) as session:
        assert isinstance(await session.execute(code), Needs)
        for words in ("blue", "green"):
            [waits] = session.escalations()
            await session.resolve(waits.id, Response(verdict="approve", reason=words))
            outcome = await session.advance()
        assert isinstance(outcome, Ok)
        assert outcome.value == PAINTED
        assert [entry.operation for entry in session.audit()] == CALLS


async def test_code_that_waits_holds_no_process() -> None:
    engine = python_engine(key=KEY, max_workers=1)
    async with memory_session(engine=engine, policy=FixedPolicy(default="allow")) as session:
        assert isinstance(await session.execute(ASKS), Needs)
        async with asyncio.timeout(60):  # the one worker is free for others
            other = memory_session(engine=engine, policy=FixedPolicy(default="allow"))
            async with other as second:
                assert isinstance(await second.execute("1 + 1"), Ok)
    assert worker_pids() == []


async def test_a_denial_is_an_error_that_the_code_can_catch() -> None:
    code = "try:\n    answer = person.ask(question='May I?')\nexcept PermissionError as error:\n    answer = str(error)\nanswer"
    async with memory_session(engine=python_engine(key=KEY), policy=FixedPolicy(default="allow")) as session:
        assert isinstance(await session.execute(code), Needs)
        [waits] = session.escalations()
        await session.resolve(waits.id, Response(verdict="deny", reason="not today"))
        outcome = await session.advance()
        assert isinstance(outcome, Ok)
        assert "not today" in str(outcome.value)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sandbox", ["python", "lisp", "wasi"])
async def test_the_answer_may_come_in_another_process(tmp_path: Path, sandbox: str) -> None:
    code = ASKS_IN_LISP if sandbox == "lisp" else ASKS
    started = await take_step(tmp_path, sandbox, "start", code)
    assert (started["outcome"], started["asked"]) == ("Needs", ["Which colour?"])
    first = await take_step_in_another_process(tmp_path, sandbox, "answer", "blue")
    assert (first["outcome"], first["asked"]) == ("Needs", ["And then?"])
    second = await take_step(tmp_path, sandbox, "answer", "green")
    assert (second["outcome"], second["value"]) == ("Proposed", PAINTED)
    assert second["calls"] == CALLS, "no call was made twice, although two processes took part"
    assert second["starts"] == 1


async def take_step_in_another_process(home: Path, *words: str) -> dict[str, Any]:
    """One step in a process that starts for it."""
    process = await asyncio.create_subprocess_exec(
        *forked_python("-m", "tests.guests.ask_main", str(home), *words),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), timeout=600)
    assert process.returncode == 0, errors.decode()[-2000:]
    state: dict[str, Any] = json.loads(output.splitlines()[-1])
    return state
