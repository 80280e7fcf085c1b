"""Work on the event loop is short, whatever a guest or a server sends: it is found by a watchdog, here and in `doctor --watch`."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.support import watched_loop
from tests.support.watched_loop import assert_loop_is_free

from holdfast.app import Runtime
from holdfast.cli.doctor.event_loop import WORK
from holdfast.cli.doctor.loop_watchdog import LoopWatchdog
from holdfast.core import ArgumentRoles, FunctionToolset, Json, Ok, Tool
from holdfast.guests import script
from holdfast.policy import FixedPolicy
from holdfast.session import Settings
from holdfast.testing import memory_session

__all__ = ["run"]


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_work_over_the_limit_is_found_with_its_name() -> None:
    async def busy() -> None:
        spin(0.06)

    with LoopWatchdog() as watchdog:
        await asyncio.create_task(busy())
        asyncio.get_running_loop().call_soon(spin, 0.06)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert [each.what.rpartition(".")[2] for each in watchdog.blocked] == ["busy", "spin"]
    assert all(each.milliseconds >= 60 for each in watchdog.blocked)
    assert watchdog.longest_seconds >= 0.06


async def test_waiting_and_work_in_threads_are_not_work_of_the_loop() -> None:
    with LoopWatchdog() as watchdog:
        await asyncio.sleep(0.05)
        await asyncio.to_thread(spin, 0.06)
    assert watchdog.blocked == []


async def test_work_that_is_over_the_limit_each_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_loop, "_calibrate", lambda: 0.0)

    async def work() -> None:
        spin(0.06)

    with pytest.raises(AssertionError, match="work"):
        await assert_loop_is_free(work)


@pytest.mark.parametrize("what", WORK)
@pytest.mark.promise("P14")
async def test_a_guest_with_large_values_does_not_block_the_loop(tmp_path: Path, what: str) -> None:
    (tmp_path / "work").mkdir()
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings(), servers=())
    try:
        session = await runtime.create(
            workspace=tmp_path / "work", policy=FixedPolicy(default="stage"), needs_model=False
        )
        await session.execute("world.write(path='a', content='x')\nworld.search(query='x')\nprint([1])")

        async def work() -> None:
            assert await session.execute(WORK[what])

        await assert_loop_is_free(work)
    finally:
        await runtime.close()


RESULTS: dict[str, Json] = {
    "a long text": "é" * 4_000_000,
    "many texts": ["line of a log"] * 200_000,
    "many rows": [{"row": number, "text": "x"} for number in range(50_000)],
    "deep": [[[[[["x"] * 10] * 10] * 10] * 10] * 10],
}


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.promise("P14")
async def test_a_server_with_large_results_does_not_block_the_loop(kind: str) -> None:
    tool = Tool(name="box.get", roles={"name": ArgumentRoles(default=("none",))})
    box = FunctionToolset({tool.name: (tool, lambda _: RESULTS[kind])})
    async with memory_session(policy=FixedPolicy(default="allow"), toolsets=[box]) as session:
        await session.execute(script({"call": "session.id", "arguments": {}}))

        async def work() -> None:
            outcome = await session.execute(
                script({"call": "box.get", "arguments": {"name": "x"}, "as": "got"}, {"value": 1})
            )
            assert isinstance(outcome, Ok)

        await assert_loop_is_free(work)


def test_doctor_watches_the_loop(run: Run) -> None:
    shown = run("doctor", "--watch").out
    assert shown.count("event loop") >= len(WORK)
    assert "at a time" in shown
