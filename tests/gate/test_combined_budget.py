"""A session that spends from two shared budgets: its fork tree's and its team's."""

import pytest

from holdfast.core import Amount, Limits
from holdfast.core.errors import BudgetExceeded
from holdfast.gate import InMemoryTreeBudget
from holdfast.gate.tree_budget import CombinedTreeBudget


async def test_both_budgets_need_room_and_both_are_charged() -> None:
    wide, narrow = InMemoryTreeBudget(Limits(calls=5)), InMemoryTreeBudget(Limits(calls=2))
    both = CombinedTreeBudget(wide, narrow)
    held = await both.reserve(Amount(calls=2))
    with pytest.raises(BudgetExceeded):
        await both.reserve(Amount(calls=1))
    assert wide.remaining("calls") == 3
    both.release(held)
    both.charge(Amount(calls=1))
    assert [each.remaining("calls") for each in (wide, narrow, both)] == [4, 1, 1]
    both.add(Limits(calls=1))
    await both.check()
    assert both.remaining("calls") == 2
    assert both.remaining("tokens") is None
