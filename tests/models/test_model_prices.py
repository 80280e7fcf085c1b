"""Prices: exact if the list has them, otherwise unknown, and never 0 by mistake."""

from datetime import date
from decimal import Decimal

import pytest

from holdfast.core import Usage
from holdfast.models import price, price_list, price_of

USED = Usage(input_tokens=10_000, output_tokens=2_000)


def test_a_listed_model_costs_its_list_price() -> None:
    listed = price("anthropic:claude-sonnet-5-5")
    assert listed is not None
    expected = (listed.input_usd * 10_000 + listed.output_usd * 2_000) / 1_000_000
    assert price_of("anthropic:claude-sonnet-5-5", USED) == expected > 0


def test_cached_input_costs_less_and_is_part_of_the_input() -> None:
    cached = Usage(input_tokens=10_000, output_tokens=2_000, cached_tokens=9_000)
    full, less = (
        price_of("anthropic:claude-sonnet-5-5", USED),
        price_of("anthropic:claude-sonnet-5-5", cached),
    )
    assert full is not None
    assert less is not None
    assert 0 < less < full


@pytest.mark.parametrize(
    "model",
    [
        "openai:no-such-model-9",
        "server:https://models.example/v1#m",
        "ollama:gpt-oss:120b-cloud",
        "what is this",
    ],
)
def test_an_unknown_price_is_none(model: str) -> None:
    assert price_of(model, USED) is None


@pytest.mark.parametrize(
    "model", ["local:/m/a.gguf", "ollama:qwen3", "server:http://127.0.0.1:8080/v1#m", "scripted:demo"]
)
def test_a_model_on_this_machine_costs_nothing(model: str) -> None:
    assert price_of(model, USED) == Decimal(0)


def test_the_list_is_dated_and_never_after_today() -> None:
    listed = price_list()
    assert listed.source.startswith("genai-prices ")
    assert date(2026, 1, 1) < date.fromisoformat(listed.dated)
    assert date.fromisoformat(price_list(date(2026, 3, 1)).dated) <= date(2026, 3, 1)
