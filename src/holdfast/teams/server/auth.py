"""Callers of the teams server, identified by the tokens we issue and never by what they claim."""

import secrets
from collections.abc import Callable

from holdfast.core import JsonObject, SessionId, Value, digest_bytes
from holdfast.teams.pairs import EXTERNAL_SENDER


class Caller(Value):
    """A team or an external client. `asking_session` is set for a member: the session whose turn makes the request."""

    team: str = EXTERNAL_SENDER
    is_operator: bool = False
    asking_session: SessionId | None = None


class Callers:
    """Issued tokens and their callers. Only digests are stored, so the time of a lookup reveals nothing."""

    def __init__(self) -> None:
        self._callers: dict[str, Caller] = {}

    def add(self, caller: Caller, token: str = "") -> str:
        """Register a caller and return its token, a new one if none is given."""
        token = token or secrets.token_urlsafe(32)
        self._callers[digest_bytes(token.encode())] = caller
        return token

    def find(self, token: str) -> Caller | None:
        """The caller of a token; None if the token is unknown."""
        return self._callers.get(digest_bytes(token.encode()))

    def revoke(self, token: str) -> None:
        """Make a token invalid."""
        self._callers.pop(digest_bytes(token.encode()), None)

    def issue_token(self, url: str, caller: Caller) -> "IssuedToken":
        """Issue the token with which a member reaches the server while it is awake."""
        token = self.add(caller)
        entry: JsonObject = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
        return IssuedToken(entry, lambda: self.revoke(token))


class IssuedToken:
    """The server's entry for a member's MCP configuration, and how to revoke its token."""

    def __init__(self, entry: JsonObject, revoke: Callable[[], None]) -> None:
        self.server_entry = entry
        self.revoke = revoke
