"""The bearer token of an HTTP request: what its `Authorization` header carries, whoever it stands for."""

_SCHEME = "bearer"


def bearer_token(header: str) -> str | None:
    """The token; None where the header carries none. The word before it may be in any case, as RFC 9110 has it."""
    scheme, _, token = header.partition(" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None
