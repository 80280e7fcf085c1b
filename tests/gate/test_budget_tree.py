"""A tree of sessions shares one budget, and together they never exceed it."""

import asyncio
import random
from decimal import Decimal

import msgspec
import pytest

from holdfast.core import DIMENSIONS, PERSON, Amount, Dimension, FakeClock, Limits, call_id
from holdfast.core.errors import BudgetExceeded
from holdfast.core.events import CallSettled, SessionOpened
from holdfast.gate import Budget, InMemoryTreeBudget
from holdfast.store import Journal, MemoryStore


def amount(units: int) -> Amount:
    """As many units in every dimension but the one that is counted by itself."""
    return Amount(
        tokens=units,
        cost_usd=Decimal(units) / 100,
        wall_seconds=float(units),
        steps=units,
        bytes_written=units,
    )


def limits(units: int) -> Limits:
    return Limits(
        tokens=units,
        cost_usd=Decimal(units) / 100,
        wall_seconds=float(units),
        steps=units,
        bytes_written=units,
    )


class Member:
    """One session of a tree: its journal and its budget."""

    def __init__(self, journal: Journal, turn_limits: Limits, tree: InMemoryTreeBudget) -> None:
        self.journal = journal
        self.budget = Budget(journal, turn_limits=turn_limits, tree=tree)


async def opened(own: Limits) -> Journal:
    event = SessionOpened(
        principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="", limits=own
    )
    return await MemoryStore(clock=FakeClock()).create(event)


async def simulate(trees: int, seed: int) -> None:
    """Trees of sessions whose turns reserve, wait and settle all at once, each under limits of its own as well."""
    chance = random.Random(seed)
    for _ in range(trees):
        cap = chance.randint(0, 40)
        tree = InMemoryTreeBudget(limits(cap))
        members = [
            Member(await opened(limits(chance.randint(0, 40))), limits(chance.randint(0, 30)), tree)
            for _ in range(3)
        ]
        work = (spend(chance.choice(members), random.Random(chance.random())) for _ in range(8))
        await asyncio.gather(*work)
        assert is_within(tree.spent, tree.limits)
        assert tree.spent.tokens == sum(member.budget.spent.tokens for member in members)
        for budget in (member.budget for member in members):
            assert is_within(budget.spent, budget.limits)
            assert is_within(budget.turn_spent, budget.turn_limits)


async def spend(member: Member, chance: random.Random) -> None:
    budget = member.budget
    for _ in range(5):
        wanted = chance.randint(0, 12)
        try:
            held = await budget.reserve(amount(wanted))
        except BudgetExceeded:
            continue
        await asyncio.sleep(0)
        settled = CallSettled(call=call_id(1, 1), status="ok", amount=amount(chance.randint(0, wanted)))
        await member.journal.append(settled)
        await asyncio.sleep(0)
        budget.release(held)


def is_within(spent: Amount, bounds: Limits) -> bool:
    pairs = [(getattr(spent, each), getattr(bounds, each)) for each in DIMENSIONS]
    return all(used <= bound for used, bound in pairs if bound is not None)


async def test_no_tree_ever_exceeds_its_limits() -> None:
    await simulate(100, seed=1)


@pytest.mark.soak
async def test_thousands_of_trees_never_exceed_their_limits() -> None:
    await simulate(4_000, seed=2)


@pytest.mark.parametrize("dimension", DIMENSIONS)
async def test_exactly_n_units_of_every_dimension_are_usable(dimension: Dimension) -> None:
    tree = InMemoryTreeBudget(msgspec.convert({dimension: 3}, Limits, strict=False))
    one = msgspec.convert({dimension: 1}, Amount, strict=False)
    for _ in range(3):
        held = await tree.reserve(one)
        tree.charge(one)
        tree.release(held)
    with pytest.raises(BudgetExceeded) as stopped:
        await tree.reserve(one)
    assert stopped.value.dimension == dimension


async def test_an_unknown_price_leaves_no_room_under_a_cost_limit() -> None:
    tree = InMemoryTreeBudget(Limits(cost_usd=Decimal(1)))
    with pytest.raises(BudgetExceeded):
        await tree.reserve(Amount(cost_usd=None))
    tree.charge(Amount(cost_usd=None))
    assert tree.remaining("cost_usd") == 0


async def test_a_limit_can_be_spent_completely() -> None:
    tree = InMemoryTreeBudget(Limits(tokens=1000))
    tree.release(await tree.reserve(Amount(tokens=1000)))
    tree.charge(Amount(tokens=1000))
    assert tree.remaining("tokens") == 0
    with pytest.raises(BudgetExceeded):
        await tree.reserve(Amount(tokens=1))
