"""What a model counted for one reply."""

from decimal import Decimal

from holdfast.core.values import Value


class Usage(Value):
    """Tokens in and out, and their price; None where the price is not known. Cached input is part of input_tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None
