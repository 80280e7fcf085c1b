"""Many sessions in one process: they cost little at rest and do not disturb each other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Error, FunctionToolset, Json, JsonObject, Ok, Tool
from holdfast.policy import FixedPolicy
from holdfast.session import Settings

BREAK = Tool(name="box.crash", parameters={"type": "object", "properties": {}}, roles={})
IDLE_MEGABYTES = 150


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


async def test_active_sessions_do_not_disturb_each_other(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow")
    sessions = [await runtime.create(policy=policy, needs_model=False) for _ in range(20)]

    async def work(number: int) -> None:
        session = sessions[number]
        await session.execute(f"mine = {number}\nopen('n.txt', 'w').write('{number}')")
        assert await session.execute("mine") == Ok(value=number)
        assert session.workspace.read("n.txt") == str(number).encode()
        assert session.budget.spent.iterations == 2

    await asyncio.gather(*(work(number) for number in range(len(sessions))))


async def test_a_crash_in_one_session_leaves_the_others(runtime: Runtime) -> None:
    def crash(arguments: JsonObject) -> Json:
        raise MemoryError("broken")

    broken = FunctionToolset({BREAK.name: (BREAK, crash)})
    policy = FixedPolicy(default="allow")
    one = await runtime.create(policy=policy, needs_model=False, toolsets=[broken])
    other = await runtime.create(policy=policy, needs_model=False)
    ended, fine = await asyncio.gather(one.execute("box.crash()"), other.execute("1 + 1"))
    assert isinstance(ended, Error)
    assert fine == Ok(value=2)
    assert await one.execute("2 + 2") == Ok(value=4), "and it is ready again itself"


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_thousand_idle_sessions_cost_little(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow")
    first = await runtime.create(policy=policy, needs_model=False)
    await first.execute("1")
    before = _resident()
    for _ in range(1000):
        session = await runtime.create(policy=policy, needs_model=False)
        assert session.status.activity == "ready"
    grown = (_resident() - before) / 1e6
    print(f"1,000 idle sessions: {grown:.0f} MB")
    assert grown <= IDLE_MEGABYTES


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
