"""WASI code runs programs: `shell.run` is a call like any other, and what the program changes is judged."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import KEY

from holdfast import Runtime
from holdfast.commands import ScriptedSandboxes
from holdfast.core import Proposed
from holdfast.guests import Engines
from holdfast.policy import FixedPolicy

pytestmark = pytest.mark.timeout(900)  # the first test may wait for the build of the component
STAGING = FixedPolicy(default="allow", verdicts={"world.write": "stage"})


@pytest_asyncio.fixture(loop_scope="module")
async def programs(tmp_path: Path, cache: Path) -> AsyncIterator[Runtime]:
    engines = Engines(key=KEY, cache=cache)
    made = await Runtime.start(
        home=tmp_path / "home", engines=engines, sandboxes=ScriptedSandboxes(), servers=()
    )
    yield made
    await made.close()


async def test_wasi_code_runs_a_program_and_its_changes_are_staged(programs: Runtime) -> None:
    session = await programs.create(policy=STAGING, needs_model=False, sandbox="wasi")
    code = 'shell.run(["tee", "a"], stdin="by a program")\nshell.run(["cat", "a"])["output"]'
    outcome = await session.execute(code)
    assert isinstance(outcome, Proposed), outcome
    assert (outcome.value, outcome.proposals) == ("by a program", ("a",))
