"""Grants that apply to every session: one document of the data directory, or of the store that machines share; revoked by id."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.core import Grant, GrantId
from holdfast.core.errors import InvalidConfig
from holdfast.store import Document, FileDocument, Home, Store, open_document

MAX_BYTES = 1_000_000
"""Maximum size of the document: room for more than a thousand grants."""


class SavedGrants:
    """The saved grants. Other processes may change them; each change is made from the newest ones."""

    def __init__(self, place: Path | Document) -> None:
        self._document = FileDocument(place, max_bytes=MAX_BYTES) if isinstance(place, Path) else place

    @classmethod
    def of(cls, home: Home, store: Store) -> "SavedGrants":
        """The grants of a data directory, or those of the store that machines share."""
        return cls(open_document(store, home.grants, max_bytes=MAX_BYTES))

    async def refresh(self) -> None:
        """Look at what other machines saved and revoked. Raises StoreUnavailable."""
        await self._document.refresh()

    def load(self) -> tuple[Grant, ...]:
        """Every saved grant as of the last `refresh`. Raises InvalidConfig if the document cannot be read."""
        try:
            return msgspec.json.decode(self._document.read(), type=tuple[Grant, ...])
        except FileNotFoundError:
            return ()
        except (ValueError, RecursionError, OSError) as error:  # not JSON, or not UTF-8
            raise InvalidConfig(
                f"{self._document.where}: {error}", hint="move the file away; this discards its grants"
            ) from error

    def load_or_empty(self) -> tuple[Grant, ...]:
        """Every saved grant, for a running session: a document that became unreadable grants nothing."""
        try:
            return self.load()
        except InvalidConfig:
            return ()

    async def save(self, grant: Grant) -> None:
        """Save a grant for every future session."""
        await self._document.update(lambda: self._change(lambda grants: (*grants, grant)))

    async def revoke(self, id: GrantId) -> bool:
        """Delete a grant. False if there is no grant with this id."""

        def revoke() -> bool:
            before = len(self.load())
            self._change(lambda grants: tuple(grant for grant in grants if grant.id != id))
            return len(self.load()) < before

        return await self._document.update(revoke)

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> None:
        def make() -> bytes:
            content = msgspec.json.format(msgspec.json.encode(change(self.load())), indent=2)
            if len(content) > MAX_BYTES:
                raise InvalidConfig(
                    f"{self._document.where} has no room for another grant",
                    hint="list them with: holdfast grants, then revoke some",
                )
            return content

        self._document.change(make)
