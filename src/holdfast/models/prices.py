"""Prices of replies, from the price list of the genai-prices package. An unknown price is None, never 0.

The list is part of the installed package; nothing is downloaded.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from holdfast.core import Usage, Value
from holdfast.core.errors import InvalidConfig
from holdfast.models.providers import PROVIDERS
from holdfast.models.specs import ModelSpec, parse_spec

if TYPE_CHECKING:
    from genai_prices.types import AbstractUsage, ModelInfo

_DATE = re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b")


class PriceList(Value):
    """The price list in use. `dated` is the newest past date that it mentions, so it is at least that new."""

    source: str
    dated: str


class Price(Value):
    """The price of a million tokens in US dollars, for a short prompt."""

    model: str
    input_usd: Decimal
    output_usd: Decimal
    context_tokens: int | None


def price_of(model: str, usage: Usage) -> Decimal | None:
    """The cost of this usage of a model, or None if its price is unknown."""
    from genai_prices import Usage as PricedUsage

    counted = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return price_of_request(parse_spec(model), counted)
    except InvalidConfig:
        return None


def price_of_request(spec: ModelSpec, usage: "AbstractUsage") -> Decimal | None:
    """Like `price_of`, from the provider's detailed counts: writing to a cache has its own price."""
    if is_free(spec):
        return Decimal(0)
    provider = _price_list_id(spec)
    if provider is None:
        return None
    from genai_prices import calc_price

    try:
        return calc_price(usage, spec.name, provider_id=provider).total_price
    except LookupError:
        return None


def is_free(spec: ModelSpec) -> bool:
    """Whether it costs nothing: it runs on this machine and does not relay requests to a paid service."""
    is_relayed = spec.provider == "ollama" and spec.name.endswith("cloud")
    return spec.is_on_this_machine and not is_relayed


def context_tokens(spec: ModelSpec) -> int | None:
    """The size of a model's context window according to the price list."""
    found = _find(spec)
    return found.context_window if found else None


def price(model: str) -> Price | None:
    """The prices of a model, or None if the list does not contain it."""
    spec = parse_spec(model)
    # Long prompts may cost more per token, so we price a thousand tokens and multiply.
    input_usd, output_usd = (
        price_of(model, usage) for usage in (Usage(input_tokens=1000), Usage(output_tokens=1000))
    )
    if input_usd is None or output_usd is None:
        return None
    return Price(
        model=model,
        input_usd=input_usd * 1000,
        output_usd=output_usd * 1000,
        context_tokens=context_tokens(spec),
    )


def price_list(today: date | None = None) -> PriceList:
    """The price list in use, and how recent it is."""
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    latest = (today or datetime.now(UTC).date()).isoformat()
    days = {day for provider in get_snapshot().providers for day in _DATE.findall(repr(provider))}
    dated = max((day for day in days if day <= latest), default="unknown")
    return PriceList(source=f"genai-prices {genai_prices.__version__}", dated=dated)


def _price_list_id(spec: ModelSpec) -> str | None:
    provider = PROVIDERS.get(spec.provider)
    return provider.price_list_id or None if provider else None


def _find(spec: ModelSpec) -> "ModelInfo | None":
    provider = _price_list_id(spec)
    if provider is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(spec.name, None, provider, None)[1]
    except LookupError:
        return None
