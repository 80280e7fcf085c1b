"""Prices: what a reply cost, from the maintained list of genai-prices. An unknown price is None and never 0.

The list comes with the installed package; nothing is fetched.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from holdfast.core import Usage, Value
from holdfast.core.errors import InvalidConfig
from holdfast.models.specs import ModelSpec, parse_spec

if TYPE_CHECKING:
    from genai_prices.types import AbstractUsage, ModelInfo

_LISTED = {"anthropic": "anthropic", "openai": "openai", "openai-chat": "openai", "google": "google"}
_DATE = re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b")


class PriceList(Value):
    """Where prices come from. `dated` is the newest past day the list speaks of: it is at least that new."""

    source: str
    dated: str


class Price(Value):
    """What a million tokens of a model cost in US dollars, for a short prompt."""

    model: str
    input_usd: Decimal
    output_usd: Decimal
    context_tokens: int | None


def price_of(model: str, usage: Usage) -> Decimal | None:
    """What this usage of a model cost, None where no price is known."""
    from genai_prices import Usage as ListedUsage

    counted = ListedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return price_of_request(parse_spec(model), counted)
    except InvalidConfig:
        return None


def price_of_request(spec: ModelSpec, usage: "AbstractUsage") -> Decimal | None:
    """As `price_of`, by the provider's own fine counts: writing to a cache has a price of its own."""
    if is_free(spec):
        return Decimal(0)
    provider = _LISTED.get(spec.provider)
    if provider is None:
        return None
    from genai_prices import calc_price

    try:
        return calc_price(usage, spec.name, provider_id=provider).total_price
    except LookupError:
        return None


def is_free(spec: ModelSpec) -> bool:
    """Whether nobody charges for it: it runs on this machine and does not pass the work on."""
    is_relayed = spec.provider == "ollama" and spec.name.endswith("cloud")
    return spec.is_on_this_machine and not is_relayed


def context_tokens(spec: ModelSpec) -> int | None:
    """The size of a model's window as the price list has it."""
    found = _find(spec)
    return found.context_window if found else None


def price(model: str) -> Price | None:
    """The prices of a model, None where the list does not have it."""
    spec = parse_spec(model)
    # Long prompts may cost more a token, so the price of a million is that of a thousand, a thousand times.
    asked, answered = (
        price_of(model, usage) for usage in (Usage(input_tokens=1000), Usage(output_tokens=1000))
    )
    if asked is None or answered is None:
        return None
    return Price(
        model=model,
        input_usd=asked * 1000,
        output_usd=answered * 1000,
        context_tokens=context_tokens(spec),
    )


def price_list(today: date | None = None) -> PriceList:
    """Which list is in use, and how new it is."""
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    last = (today or datetime.now(UTC).date()).isoformat()
    days = {day for provider in get_snapshot().providers for day in _DATE.findall(repr(provider))}
    dated = max((day for day in days if day <= last), default="unknown")
    return PriceList(source=f"genai-prices {genai_prices.__version__}", dated=dated)


def _find(spec: ModelSpec) -> "ModelInfo | None":
    provider = _LISTED.get(spec.provider)
    if provider is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(spec.name, None, provider, None)[1]
    except LookupError:
        return None
