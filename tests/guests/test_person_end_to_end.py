"""Code that asks its person: it waits in the middle of a line, holds no process, and goes on in another one."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.guests.engines import KEY
from tests.guests.test_python_guest import worker_pids

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
async def test_code_goes_on_in_mid_line_with_what_the_person_said(engine: Any, code: str) -> None:
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
        async with asyncio.timeout(30):  # the one worker is free for others
            other = memory_session(engine=engine, policy=FixedPolicy(default="allow"))
            async with other as second:
                assert isinstance(await second.execute("1 + 1"), Ok)
    assert worker_pids() == []


async def test_a_no_is_an_error_that_the_code_can_catch() -> None:
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
def test_the_answer_may_come_in_another_process(tmp_path: Path, sandbox: str) -> None:
    code = ASKS_IN_LISP if sandbox == "lisp" else ASKS
    begun = process(tmp_path, sandbox, "begin", code)
    assert (begun["outcome"], begun["asked"]) == ("Needs", ["Which colour?"])
    first = process(tmp_path, sandbox, "answer", "blue")
    assert (first["outcome"], first["asked"]) == ("Needs", ["And then?"])
    second = process(tmp_path, sandbox, "answer", "green")
    assert (second["outcome"], second["value"]) == ("Proposed", PAINTED)
    assert second["calls"] == CALLS, "no call was made twice, although three processes took part"
    assert second["starts"] == 1


def process(home: Path, *words: str) -> dict[str, Any]:
    """One process of the session, from its start to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.guests.waiting", str(home), *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
