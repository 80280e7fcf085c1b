"""Budgets in whole turns: stopped in the middle, resumed, timed, cancelled, forked."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import (
    Call,
    FakeClock,
    FunctionToolset,
    JsonObject,
    Limits,
    Nonconverged,
    Ok,
    Performed,
    Response,
    Tool,
)
from holdfast.guests import script
from holdfast.models import say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.store import Home
from holdfast.testing import memory_session

TOOL = Tool(
    name="rope.pull", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}, roles={}
)


def code_with_calls(*numbers: int) -> str:
    steps: list[JsonObject] = [{"call": TOOL.name, "arguments": {"n": number}} for number in numbers]
    return script(*steps)


class RecordingToolset(FunctionToolset):
    """A tool that remembers its pulls; each takes three seconds, and the ninth never ends."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        super().__init__({TOOL.name: (TOOL, lambda arguments: arguments["n"])})
        self._clock = clock
        self.is_stuck = asyncio.Event()

    @property
    def calls(self) -> list[object]:
        return [call.arguments["n"] for call in self.performed]

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if self._clock is not None:
            self._clock.advance(3)
        if call.arguments["n"] == 9:
            self.is_stuck.set()
            await asyncio.Event().wait()
        return await super().perform(call, is_staged=is_staged)


# -- stopped and resumed


async def test_host_code_that_runs_out_of_budget_resumes_at_the_same_call() -> None:
    toolset = RecordingToolset()
    async with memory_session(toolsets=[toolset], limits=Limits(calls=2)) as session:
        stopped = await session.execute(code_with_calls(1, 2, 3, 4))
        assert stopped == Nonconverged(reason="budget", dimension="calls")
        assert toolset.calls == [1, 2], "what was done is kept"
        assert session.status.activity == "ready"
        await session.raise_budget(Limits(calls=4))
        assert await session.advance() == Ok(value=4)
        assert toolset.calls == [1, 2, 3, 4], "and not done again"
        assert session.budget.spent.calls == 4


async def test_a_raised_budget_resumes_a_turn_once() -> None:
    toolset = RecordingToolset()
    async with memory_session(toolsets=[toolset], limits=Limits(calls=1)) as session:
        await session.execute(code_with_calls(1, 2, 3))
        await session.raise_budget(Limits(calls=2))
        assert isinstance(await session.advance(), Nonconverged)
        assert await session.advance() is None, "the budget was not raised again"
        assert toolset.calls == [1, 2]


async def test_model_code_that_runs_out_of_budget_resumes_at_the_same_call() -> None:
    toolset = RecordingToolset()
    replies = [use("execute_code", {"code": code_with_calls(1, 2, 3)}), say("pulled")]
    async with memory_session(replies, toolsets=[toolset], limits=Limits(calls=2)) as session:
        assert isinstance(await session.send("pull"), Nonconverged)
        await session.raise_budget(Limits(calls=3))
        assert await session.advance() == Ok(value="pulled")
        assert toolset.calls == [1, 2, 3]


async def test_a_guest_that_catches_refusals_cannot_continue_without_budget() -> None:
    steps: list[JsonObject] = [
        {"call": TOOL.name, "arguments": {"n": number}, "catch": True} for number in (1, 2, 3)
    ]
    async with memory_session(toolsets=[RecordingToolset()], limits=Limits(calls=1)) as session:
        assert isinstance(await session.execute(script(*steps)), Nonconverged)
        assert len(session.audit()) == 2, "the call that was too much, and none after it"


async def test_after_a_run_without_budget_a_new_message_can_be_sent() -> None:
    replies = [use("execute_code", {"code": code_with_calls(1, 2)}), say("Of course.")]
    async with memory_session(replies, toolsets=[RecordingToolset()], limits=Limits(calls=1)) as session:
        assert isinstance(await session.send("pull"), Nonconverged)
        assert await session.send("something else") == Ok(value="Of course.")


@pytest.mark.parametrize(("dimension", "one"), [("calls", Limits(calls=1)), ("steps", Limits(steps=1))])
async def test_a_turn_stopped_by_a_turn_limit_resumes_with_what_was_added(
    dimension: str, one: Limits
) -> None:
    replies = [use("execute_code", {"code": code_with_calls(1, 2)}), say("pulled")]
    settings = Settings(turn_budget=one)
    async with memory_session(replies, toolsets=[RecordingToolset()], settings=settings) as session:
        assert await session.send("pull") == Nonconverged(value="", reason="budget", dimension=dimension)
        await session.raise_budget(Limits(), added=one)
        assert await session.advance() == Ok(value="pulled")


async def test_what_was_added_to_one_turn_does_not_apply_to_the_next() -> None:
    settings = Settings(turn_budget=Limits(calls=1))
    async with memory_session(toolsets=[RecordingToolset()], settings=settings) as session:
        await session.execute(code_with_calls(1, 2))
        await session.raise_budget(Limits(), added=Limits(calls=1))
        assert isinstance(await session.advance(), Ok)
        assert isinstance(await session.execute(code_with_calls(3, 4)), Nonconverged)


# -- time


async def test_time_worked_before_a_wait_is_recorded_before_the_wait() -> None:
    clock = FakeClock()
    policy = FixedPolicy(default="allow", verdicts={"world.delete": "escalate"})
    code = (
        code_with_calls(1, 2)
        + "\n"
        + script({"call": "world.delete", "arguments": {"path": "a"}, "catch": True})
    )
    async with memory_session(toolsets=[RecordingToolset(clock)], clock=clock, policy=policy) as session:
        await session.execute(code)
        [waits] = session.escalations()
        assert session.budget.spent.wall_seconds == 6
        clock.advance(100)
        await session.resolve(waits.id, Response(verdict="deny"))
        await session.advance()
        assert session.budget.spent.wall_seconds == 6, "waiting for a person is not work"


async def test_time_before_and_after_a_wait_counts_against_one_limit() -> None:
    clock = FakeClock()
    policy = FixedPolicy(default="allow", verdicts={"world.list": "escalate"})
    code = "\n".join(
        (code_with_calls(1, 2), script({"call": "world.list", "arguments": {}}), code_with_calls(3))
    )
    settings = Settings(turn_budget=Limits(wall_seconds=5.0))
    async with memory_session(
        toolsets=[RecordingToolset(clock)], clock=clock, policy=policy, settings=settings
    ) as session:
        await session.execute(code)
        await session.resolve(session.escalations()[0].id, Response(verdict="approve"))
        assert await session.advance() == Nonconverged(reason="budget", dimension="wall_seconds")


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_turn_that_is_cancelled_or_released_is_charged_for_its_time(how: str) -> None:
    clock = FakeClock()
    toolset = RecordingToolset(clock)
    async with memory_session(toolsets=[toolset], clock=clock) as session:
        turn = asyncio.create_task(session.execute(code_with_calls(1, 9)))
        await toolset.is_stuck.wait()
        await getattr(session, how)()
        await asyncio.gather(turn, return_exceptions=True)
        assert session.budget.spent.wall_seconds == 6


# -- forks


@asynccontextmanager
async def runtime(home: Path) -> AsyncIterator[Runtime]:
    made = await Runtime.start(home=home)
    try:
        yield made
    finally:
        await made.close()


async def limited(made: Runtime, calls: int) -> Session:
    session = await made.create(
        policy=FixedPolicy(default="allow"), needs_model=False, sandbox="lisp", limits=Limits(calls=calls)
    )
    await session.execute("(world/list)", language="lisp")
    return session


async def listed(session: Session, times: int) -> object:
    return await session.execute(" ".join(["(world/list)"] * times), language="lisp")


async def test_a_session_and_its_forks_share_one_budget(tmp_path: Path) -> None:
    async with runtime(tmp_path) as made:
        first = await limited(made, 4)
        choices = {"policy": FixedPolicy(default="allow"), "needs_model": False, "sandbox": "lisp"}
        fork = await made.fork(first.id, **choices)  # type: ignore[arg-type]
        assert isinstance(await listed(first, 1), Ok)
        assert isinstance(await listed(fork, 1), Ok)
        assert fork.budget.remaining("calls") == 1, "of four, one before the fork and one each after it"
        grandchild = await made.fork(fork.id, **choices)  # type: ignore[arg-type]
        assert isinstance(await listed(grandchild, 1), Ok)
        for each in (first, fork, grandchild):
            assert await listed(each, 1) == Nonconverged(reason="budget", dimension="calls")
        await fork.raise_budget(Limits(calls=6))
        assert isinstance(await fork.advance(), Ok), "what is added to one is added to the shared budget"


async def test_a_shared_budget_outlives_the_process_and_is_rebuilt_when_lost(tmp_path: Path) -> None:
    choices = {"policy": FixedPolicy(default="allow"), "needs_model": False, "sandbox": "lisp"}
    async with runtime(tmp_path) as made:
        first = await limited(made, 4)
        fork = await made.fork(first.id, **choices)  # type: ignore[arg-type]
        await listed(fork, 1)
        grandchild = await made.fork(fork.id, **choices)  # type: ignore[arg-type]
        await listed(grandchild, 1)
        oldest = first.id
    with closing(sqlite3.connect(Home(tmp_path).database)) as connection:
        connection.execute("DELETE FROM share")
        connection.commit()
    async with runtime(tmp_path) as made:
        first = await made.resume(oldest, **choices)  # type: ignore[arg-type]
        assert first.budget.remaining("calls") == 1, "forks of forks have spent of it too"
        assert isinstance(await listed(first, 2), Nonconverged)


async def test_a_fork_keeps_its_own_limits_when_the_root_of_its_tree_is_deleted(
    tmp_path: Path,
) -> None:
    choices = {"policy": FixedPolicy(default="allow"), "needs_model": False, "sandbox": "lisp"}
    async with runtime(tmp_path) as made:
        first = await limited(made, 4)
        fork = await made.fork(first.id, **choices)  # type: ignore[arg-type]
        ids = first.id, fork.id
        await first.close()
        await fork.close()
        await made.store.delete(ids[0])
        fork = await made.resume(ids[1], **choices)  # type: ignore[arg-type]
        assert isinstance(await listed(fork, 3), Ok)
        assert isinstance(await listed(fork, 1), Nonconverged)
        assert not (tmp_path / "sessions" / ids[0]).exists(), "nothing of the deleted one comes back"


async def test_a_fork_keeps_the_limits_that_were_raised_before_it(tmp_path: Path) -> None:
    async with runtime(tmp_path) as made:
        first = await limited(made, 1)
        await first.raise_budget(Limits(calls=3))
        await listed(first, 1)
        fork = await made.fork(
            first.id, policy=FixedPolicy(default="allow"), needs_model=False, sandbox="lisp"
        )
        assert fork.budget.limits == Limits(calls=3)
        assert isinstance(await listed(fork, 1), Ok)
