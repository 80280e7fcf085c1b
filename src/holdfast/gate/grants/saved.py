"""Grants that apply to every session: stored in one file of the data directory, revoked by id."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.core import Grant, GrantId
from holdfast.core.errors import InvalidConfig
from holdfast.store import locked, read_plain, replace_private

MAX_BYTES = 1_000_000
"""Maximum size of the file: room for more than a thousand grants."""


class SavedGrants:
    """The file of saved grants. Other processes may write it; each change is made under a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[Grant, ...]:
        """Every saved grant. Raises InvalidConfig if the file cannot be read."""
        try:
            content = read_plain(self._path, max_bytes=MAX_BYTES)
            return msgspec.json.decode(content, type=tuple[Grant, ...])
        except FileNotFoundError:
            return ()
        except (ValueError, RecursionError, OSError) as error:  # not JSON, or not UTF-8
            raise InvalidConfig(
                f"{self._path}: {error}", hint="move the file away; this discards its grants"
            ) from error

    def load_or_empty(self) -> tuple[Grant, ...]:
        """Every saved grant, for a running session: a file that became unreadable grants nothing."""
        try:
            return self.load()
        except InvalidConfig:
            return ()

    def save(self, grant: Grant) -> None:
        """Save a grant for every future session."""
        self._change(lambda grants: (*grants, grant))

    def revoke(self, id: GrantId) -> bool:
        """Delete a grant. False if there is no grant with this id."""
        before = len(self.load())
        self._change(lambda grants: tuple(grant for grant in grants if grant.id != id))
        return len(self.load()) < before

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> None:
        with locked(self._path):
            content = msgspec.json.format(msgspec.json.encode(change(self.load())), indent=2)
            if len(content) > MAX_BYTES:
                raise InvalidConfig(
                    f"{self._path} has no room for another grant",
                    hint="list them with: holdfast grants, then revoke some",
                )
            replace_private(self._path, content)
