"""A tree of sessions has one purse, and together they never take more out than it holds."""

import asyncio
import random
from decimal import Decimal

import pytest

from holdfast.core import Amount, Limits
from holdfast.core.errors import BudgetExceeded
from holdfast.gate import TreeBudget


async def simulate(trees: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(trees):
        cap = chance.randint(0, 40)
        tree = TreeBudget(Limits(tokens=cap, cost_usd=Decimal(cap) / 100))
        peak = 0

        async def spend(tree: TreeBudget, chance: random.Random) -> None:
            nonlocal peak
            for _ in range(5):
                wanted = chance.randint(0, 12)
                try:
                    held = tree.reserve(Amount(tokens=wanted, cost_usd=Decimal(wanted) / 100))
                except BudgetExceeded:
                    continue
                await asyncio.sleep(0)
                real = chance.randint(0, wanted)
                tree.charge(Amount(tokens=real, cost_usd=Decimal(real) / 100))
                tree.release(held)
                peak = max(peak, tree.spent.tokens)

        await asyncio.gather(*(spend(tree, random.Random(chance.random())) for _ in range(8)))
        assert peak <= cap
        assert tree.spent.cost_usd is not None
        assert tree.spent.cost_usd <= Decimal(cap) / 100


async def test_no_tree_ever_passes_its_cap() -> None:
    await simulate(200, seed=1)


@pytest.mark.soak
async def test_thousands_of_trees_never_pass_their_caps() -> None:
    await simulate(20_000, seed=2)


def test_an_unknown_price_leaves_no_room_under_a_cost_limit() -> None:
    tree = TreeBudget(Limits(cost_usd=Decimal(1)))
    with pytest.raises(BudgetExceeded):
        tree.reserve(Amount(cost_usd=None))
    tree.charge(Amount(cost_usd=None))
    assert tree.remaining("cost_usd") == 0


def test_all_of_a_cap_can_be_spent() -> None:
    tree = TreeBudget(Limits(tokens=1000))
    tree.release(tree.reserve(Amount(tokens=1000)))
    tree.charge(Amount(tokens=1000))
    assert tree.remaining("tokens") == 0
    with pytest.raises(BudgetExceeded):
        tree.reserve(Amount(tokens=1))
