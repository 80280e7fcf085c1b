"""Budgets as a person writes them: `--budget`, `budget add`, `/budget add` and config.toml."""

from decimal import Decimal
from pathlib import Path

import pytest

from holdfast.cli.option_types import budget_increase
from holdfast.config import load_config
from holdfast.core import Limits, parse_limits
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.store import Home


def test_amounts_are_parsed_with_their_units() -> None:
    assert parse_limits("usd=1.50,tokens=50k,time=5m") == Limits(
        cost_usd=Decimal("1.50"), tokens=50_000, wall_seconds=300.0
    )


@pytest.mark.parametrize("word", ["usd", "cost", "cost_usd"])
def test_older_words_are_accepted(word: str) -> None:
    assert parse_limits(f"{word}=2") == Limits(cost_usd=Decimal(2))


@pytest.mark.parametrize("text", ["", "usd", "usd=", "usd=-1", "tokens=5x", "time=5k", "colour=3", "usd=nan"])
def test_what_is_not_a_limit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_limits(text)


@pytest.mark.parametrize("text", ["tokens=10,tokens=99", "usd=1,cost_usd=2", "calls=1.5", "tokens=1.0001k"])
def test_duplicates_and_fractions_of_counts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_limits(text)


def test_a_fraction_of_a_thousand_may_be_a_whole_number() -> None:
    assert parse_limits("tokens=1.5k") == Limits(tokens=1500)


def test_f25_an_increase_takes_the_same_words_and_units() -> None:
    limits = Limits(cost_usd=Decimal(1), tokens=1, wall_seconds=1.0)
    assert budget_increase(["usd=1", "tokens=50k,time=5m"], limits) == Limits(
        cost_usd=Decimal(1), tokens=50_000, wall_seconds=300.0
    )


@pytest.mark.parametrize("amounts", [[], ["usd=0"], ["calls=5"], ["tokens=1", "tokens=2"]])
def test_an_increase_of_nothing_or_without_a_limit_is_refused(amounts: list[str]) -> None:
    with pytest.raises(InvalidInput):
        budget_increase(amounts, Limits(cost_usd=Decimal(1), tokens=1))


def test_the_limit_of_a_turn_that_ran_out_can_be_raised() -> None:
    assert budget_increase(["steps=5"], Limits(), stopped_by="steps") == Limits(steps=5)


def test_f25_config_takes_the_same_words_and_units(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[budget]\nusd = 1.5\ntime = "5m"\nbytes_written = 10\n')
    budget = load_config(Home(tmp_path), {}).budget
    assert budget == Limits(cost_usd=Decimal("1.5"), wall_seconds=300.0, bytes_written=10)


def test_a_dimension_given_twice_in_config_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[budget]\nusd = 1\ncost_usd = 2\n")
    with pytest.raises(InvalidConfig, match="twice"):
        load_config(Home(tmp_path), {})
