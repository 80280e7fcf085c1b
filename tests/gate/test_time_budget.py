"""Time is reserved like any other part of a budget: concurrent turns never exceed a limit together."""

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from tests.gate.fast_clock import clock, run_with_fake_time
from tests.gate.gate_setup import record

from holdfast.core import (
    Amount,
    Call,
    FunctionToolset,
    JsonObject,
    Limits,
    Nonconverged,
    Ok,
    Outcome,
    Performed,
    Tool,
)
from holdfast.core.errors import BudgetExceeded, StoreUnavailable
from holdfast.core.events import BudgetRaised, TurnEnded
from holdfast.core.ids import PERSON
from holdfast.gate import Budget, InMemoryTreeBudget, time_limit
from holdfast.guests import script
from holdfast.session import Session, Settings
from holdfast.testing import memory_session

REST = Tool(
    name="bench.rest", parameters={"type": "object", "properties": {"seconds": {"type": "number"}}}, roles={}
)
OUT_OF_TIME = Nonconverged(reason="budget", dimension="wall_seconds")


class TimedTree(FunctionToolset):
    """A tool that takes a given time."""

    def __init__(self) -> None:
        super().__init__({REST.name: (REST, lambda _: None)})

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        seconds = call.arguments["seconds"]
        assert isinstance(seconds, int | float)
        await asyncio.sleep(seconds)
        return Performed()


async def member(
    stack: AsyncExitStack, tree: InMemoryTreeBudget, own: Limits | None = None, turn: Limits | None = None
) -> Session:
    """A session that spends from a tree, on a loop whose time leaps."""
    session = await stack.enter_async_context(
        memory_session(
            toolsets=[TimedTree()],
            clock=clock(),
            limits=own,
            settings=Settings(turn_budget=turn or Limits(), call_seconds=1e6),
        )
    )
    session.budget.join_tree(tree)
    return session


def rests(*seconds: float) -> str:
    steps: list[JsonObject] = [{"call": REST.name, "arguments": {"seconds": each}} for each in seconds]
    return script(*steps)


def is_within(spent: Amount, limits: Limits) -> bool:
    return limits.wall_seconds is None or round(spent.wall_seconds, 6) <= limits.wall_seconds


async def simulate(trees: int, seed: int) -> None:
    """Trees of sessions that take turns of random length all at once, under limits of turn, session and tree."""
    chance = random.Random(seed)
    stopped = finished = 0
    for _ in range(trees):
        async with AsyncExitStack() as stack:
            tree = InMemoryTreeBudget(Limits(wall_seconds=chance.uniform(0, 400)))
            own = [Limits(wall_seconds=chance.choice((None, chance.uniform(0, 200)))) for _ in range(4)]
            members = [await member(stack, tree, each, Limits(wall_seconds=90)) for each in own]

            async def work(session: Session, chance: random.Random) -> list[Outcome]:
                await asyncio.sleep(chance.uniform(0, 50))
                return [await session.execute(rests(*chance.choices(range(60), k=3))) for _ in range(3)]

            lives = (work(session, random.Random(chance.random())) for session in members)
            outcomes = [outcome for life in await asyncio.gather(*lives) for outcome in life]
            stopped += sum(outcome == OUT_OF_TIME for outcome in outcomes)
            finished += sum(isinstance(outcome, Ok) for outcome in outcomes)
            assert is_within(tree.spent, tree.limits)
            for session in members:
                assert is_within(session.budget.spent, session.budget.limits)
                assert all(turn.outcome in (OUT_OF_TIME, Ok()) for turn in session.history())
    # A simulation in which nothing is stopped, or nothing passes, shows nothing.
    assert min(stopped, finished) > 0


def test_concurrent_turns_never_exceed_a_time_limit_together() -> None:
    run_with_fake_time(simulate(20, seed=1))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_thousands_of_trees_never_exceed_their_time_limits() -> None:
    run_with_fake_time(simulate(2_000, seed=2))


def test_one_turn_alone_can_use_all_the_time_and_no_more() -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            session = await member(stack, InMemoryTreeBudget(Limits(wall_seconds=1000)))
            assert await session.execute(rests(999.5)) == Ok()
            assert await session.execute(rests(1)) == OUT_OF_TIME
            assert round(session.budget.spent.wall_seconds, 6) == 1000
            assert session.budget.remaining("wall_seconds") == 0

    run_with_fake_time(work())


def test_a_turn_that_starts_while_another_works_finds_time() -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            tree = InMemoryTreeBudget(Limits(wall_seconds=100))
            first, second = await member(stack, tree), await member(stack, tree)
            long = asyncio.create_task(first.execute(rests(1000)))
            await asyncio.sleep(1)
            assert await second.execute(rests(10)) == Ok()
            assert await long == OUT_OF_TIME
            assert round(tree.spent.wall_seconds, 6) == 100, "and what is left over is used in the end"

    run_with_fake_time(work())


def test_time_added_while_a_turn_works_lets_it_continue() -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            session = await member(
                stack, InMemoryTreeBudget(Limits(wall_seconds=10)), Limits(wall_seconds=10)
            )
            turn = asyncio.create_task(session.execute(rests(15)))
            await asyncio.sleep(9)
            await session.raise_budget(Limits(wall_seconds=20))
            assert await turn == Ok()

    run_with_fake_time(work())


async def test_reserved_time_is_released_when_a_turn_ends() -> None:
    journal, tree = await record(), InMemoryTreeBudget(Limits(wall_seconds=100))
    budget = Budget(journal, turn_limits=Limits(), tree=tree)
    async with time_limit(budget):
        assert tree.remaining("wall_seconds") == 75
    await journal.append(TurnEnded(turn=1, outcome=Ok(), wall_seconds=2.5))
    assert tree.remaining("wall_seconds") == budget.remaining("wall_seconds") == pytest.approx(97.5)


@pytest.mark.parametrize("bound", [1e300, 0.5e-6])
async def test_unusual_time_limits_are_enforced(bound: float) -> None:
    journal = await record()
    await journal.append(BudgetRaised(limits=Limits(wall_seconds=bound), principal=PERSON))
    budget = Budget(journal, turn_limits=Limits())
    if bound < 1:
        with pytest.raises(BudgetExceeded):
            await budget.reserve_time()
    else:
        assert await budget.reserve_time() == 86_400


class UnreadableBudget(InMemoryTreeBudget):
    """A shared budget that cannot be read after its first use."""

    async def reserve(self, amount: Amount) -> int:
        self.limits = Limits(wall_seconds=50)
        if self._next:
            raise StoreUnavailable("the budget is damaged")
        return await super().reserve(amount)


def test_an_unreadable_shared_budget_gives_no_time() -> None:
    async def work() -> None:
        budget = Budget(await record(), turn_limits=Limits(), tree=UnreadableBudget(Limits(wall_seconds=50)))
        with pytest.raises(StoreUnavailable):
            async with time_limit(budget):
                await asyncio.Event().wait()

    run_with_fake_time(work())
