"""Who asks: known by a token that we handed out, never by what it says of itself."""

import secrets
from collections.abc import Callable

from holdfast.core import JsonObject, SessionId, Value, digest_bytes
from holdfast.teams.pairs import EXTERNAL_SENDER


class Caller(Value):
    """A team, or somebody outside; `asking_session` is the session in whose turn it asks, where it is a member of ours."""

    team: str = EXTERNAL_SENDER
    is_operator: bool = False
    asking_session: SessionId | None = None


class Callers:
    """Tokens and whom they stand for. Only their digests are kept, so looking one up tells nothing by its time."""

    def __init__(self) -> None:
        self._callers: dict[str, Caller] = {}

    def add(self, caller: Caller, token: str = "") -> str:
        """A token for a caller, a fresh one where none is given."""
        token = token or secrets.token_urlsafe(32)
        self._callers[digest_bytes(token.encode())] = caller
        return token

    def find(self, token: str) -> Caller | None:
        """Whom a token stands for; None for nobody."""
        return self._callers.get(digest_bytes(token.encode()))

    def revoke(self, token: str) -> None:
        """A token that stands for nobody from here on."""
        self._callers.pop(digest_bytes(token.encode()), None)

    def issue_token(self, url: str, caller: Caller) -> "IssuedToken":
        """How a member reaches the desk, for as long as it is awake."""
        token = self.add(caller)
        entry: JsonObject = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
        return IssuedToken(entry, lambda: self.revoke(token))


class IssuedToken:
    """The entry for a member's configuration that tells it of the desk; its token ends with the member."""

    def __init__(self, entry: JsonObject, revoke: Callable[[], None]) -> None:
        self.server_entry = entry
        self.revoke = revoke
