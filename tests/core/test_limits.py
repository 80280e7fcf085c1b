"""Dividing limits: the shares together never exceed the whole."""

from decimal import Decimal

import pytest

from holdfast.core import Limits
from holdfast.core.errors import InvalidInput


def test_shares_are_rounded_down_and_an_unlimited_dimension_stays_unlimited() -> None:
    whole = Limits(cost_usd=Decimal("0.10"), tokens=10, wall_seconds=1.5)
    first, second, third = whole.shares([1, 1, 4])
    assert (first.cost_usd, first.tokens, first.wall_seconds) == (Decimal("0.016666"), 1, 0.25)
    assert first == second
    assert (third.cost_usd, third.tokens, third.wall_seconds) == (Decimal("0.066666"), 6, 1.0)
    assert (first.calls, third.calls) == (None, None)


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [2, -1]])
def test_negative_or_all_zero_weights_are_refused(weights: list[int]) -> None:
    with pytest.raises(InvalidInput):
        Limits(tokens=10).shares(weights)
