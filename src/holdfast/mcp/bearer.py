"""The bearer token in the `Authorization` header of an HTTP request."""

_SCHEME = "bearer"


def bearer_token(header: str) -> str | None:
    """The token, or None if the header has none. The scheme is case-insensitive, as RFC 9110 requires."""
    scheme, _, token = header.partition(" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None
