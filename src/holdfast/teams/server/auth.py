"""Callers of the teams server, identified by the tokens we issue and never by what they claim."""

import secrets
from collections.abc import Callable

from holdfast.core import JsonObject, SessionId, Value, digest_bytes
from holdfast.teams.pairs import EXTERNAL_SENDER
from holdfast.teams.server.token_file import TokenFile

OPERATOR = "operator"
"""The name of the operator's token."""


class Caller(Value):
    """A team or an external client. `asking_session` is set for a member: the session whose turn makes the request."""

    team: str = EXTERNAL_SENDER
    is_operator: bool = False
    asking_session: SessionId | None = None


class Callers:
    """Issued tokens and their callers: those of a token file, and those that end with this process.

    Only digests are looked up, so the time of a lookup reveals nothing.
    """

    def __init__(self, kept: TokenFile | None = None) -> None:
        self._kept = kept
        self._callers: dict[str, Caller] = {}

    def add(self, caller: Caller, token: str = "") -> str:
        """Register a caller and return its token, a new one if none is given."""
        token = token or secrets.token_urlsafe(32)
        self._callers[digest_bytes(token.encode())] = caller
        return token

    def find(self, token: str) -> Caller | None:
        """The caller of a token; None if the token is unknown."""
        issued = self._callers.get(digest_bytes(token.encode()))
        if issued is not None or self._kept is None:
            return issued
        name = self._kept.name_of(token)
        if name == OPERATOR:
            return Caller(is_operator=True)
        return Caller(team=name) if name is not None else None

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
