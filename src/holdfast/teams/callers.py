"""Who asks: known by a token that we handed out, never by what it says of itself."""

import secrets

from holdfast.core import JsonObject, SessionId, Value, digest_bytes
from holdfast.teams.pairs import OUTSIDE


class Caller(Value):
    """A team, or somebody outside; `within` is the session in whose turn it asks, where it is a member of ours."""

    team: str = OUTSIDE
    is_operator: bool = False
    within: SessionId | None = None


class Callers:
    """Tokens and whom they stand for. Only their digests are kept, so looking one up tells nothing by its time."""

    def __init__(self) -> None:
        self._callers: dict[str, Caller] = {}

    def admit(self, caller: Caller, token: str = "") -> str:
        """A token for a caller, a fresh one where none is given."""
        token = token or secrets.token_urlsafe(32)
        self._callers[digest_bytes(token.encode())] = caller
        return token

    def known(self, token: str) -> Caller | None:
        """Whom a token stands for; None for nobody."""
        return self._callers.get(digest_bytes(token.encode()))


def introduction(url: str, token: str) -> JsonObject:
    """How a member reaches the desk: the entry for its configuration."""
    return {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
