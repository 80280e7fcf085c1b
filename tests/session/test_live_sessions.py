"""Many sessions in one process: they cost little when idle and do not disturb each other."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Error, FunctionToolset, Json, JsonObject, Limits, Ok, Tool
from holdfast.core.errors import SessionNotReady
from holdfast.policy import FixedPolicy
from holdfast.session import LiveSessions, Settings
from holdfast.testing import memory_session

BREAK = Tool(name="box.crash", parameters={"type": "object", "properties": {}}, roles={})
ACTIVE = 50
IDLE_MEGABYTES = 150


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


async def test_fifty_active_sessions_do_not_disturb_each_other(runtime: Runtime) -> None:
    environment, handlers = dict(os.environ), list(logging.root.handlers)
    policy = FixedPolicy(default="allow")
    sessions = [
        await runtime.create(policy=policy, needs_model=False, limits=Limits(calls=number % 6))
        for number in range(ACTIVE)
    ]

    async def work(number: int) -> None:
        session, may_call = sessions[number], number % 6
        outcome = await session.execute(f"mine = {number}\nmine")
        assert outcome == Ok(value=number) or may_call == 0
        outcome = await session.execute("for n in range(3):\n    open(f'{n}.txt', 'w').write(f'{mine}')")
        # Each has its own budget: a session with fewer than three calls stops, and no other does.
        assert isinstance(outcome, Ok) is (may_call >= 3)
        files = session.workspace.list("*.txt")
        assert len(files) == min(3, may_call)
        assert {session.workspace.read(path) for path in files} <= {str(number).encode()}

    await asyncio.gather(*(work(number) for number in range(ACTIVE)))
    assert dict(os.environ) == environment
    assert logging.root.handlers == handlers


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


async def test_the_registry_is_limited_and_a_closed_session_makes_room() -> None:
    registry = LiveSessions(max_sessions=1)
    async with memory_session() as one, memory_session() as other:
        registry.add(one)
        with pytest.raises(SessionNotReady):
            registry.add(other)
        await one.close()
        registry.remove(one.id)
        registry.add(other)
        assert registry.all() == (other,)


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
