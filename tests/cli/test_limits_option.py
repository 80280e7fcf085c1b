"""`--budget` as a person writes it."""

from decimal import Decimal

import pytest

from holdfast.cli.option_types import parse_limits
from holdfast.core import Limits
from holdfast.core.errors import InvalidInput


def test_amounts_are_parsed_with_their_units() -> None:
    assert parse_limits("usd=1.50,tokens=50k,time=5m") == Limits(
        cost_usd=Decimal("1.50"), tokens=50_000, wall_seconds=300.0
    )


@pytest.mark.parametrize("text", ["", "usd", "usd=", "usd=-1", "tokens=5x", "time=5k", "colour=3", "usd=nan"])
def test_an_invalid_limit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_limits(text)
