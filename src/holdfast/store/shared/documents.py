"""Small documents that several processes read and change as a whole, such as the saved grants and the pins of MCP tools.

A document is a file of the data directory, changed under a lock. Machines that share a store keep it there instead: a change is
computed from the newest version, and computed again if another process was faster.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from holdfast.core.errors import StoreUnavailable
from holdfast.store.contract import Store, WorkStore
from holdfast.store.files.private_files import locked, read_plain
from holdfast.store.home import replace_private

ATTEMPTS = 100
Result = TypeVar("Result")


class Document(Protocol):
    """One document."""

    @property
    def where(self) -> str:
        """What to call it in a message."""
        ...

    def read(self) -> bytes:
        """The content as it was at the last `refresh`. Raises FileNotFoundError if there is none, or OSError."""
        ...

    def change(self, make: Callable[[], bytes]) -> None:
        """Replace the content with what `make` returns, which reads it again. Call it within `update`."""
        ...

    async def refresh(self) -> None:
        """Look at what other processes wrote. Raises StoreUnavailable."""
        ...

    async def update(self, action: Callable[[], Result]) -> Result:
        """Call `action`, which may call `change`, and return its result when the change is kept. Raises StoreUnavailable.

        `action` is called again if another process changed the document in the meantime.
        """
        ...


class FileDocument:
    """A document in a private file of this machine, read again at every look."""

    def __init__(self, path: Path, *, max_bytes: int | None = None) -> None:
        self.path = path
        self._max_bytes = max_bytes

    @property
    def where(self) -> str:
        return str(self.path)

    def read(self) -> bytes:
        if self._max_bytes is None:
            return self.path.read_bytes()
        return read_plain(self.path, max_bytes=self._max_bytes)

    def change(self, make: Callable[[], bytes]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.path):
            replace_private(self.path, make())

    async def refresh(self) -> None:
        """There is nothing to do."""

    async def update(self, action: Callable[[], Result]) -> Result:
        return action()


class SharedDocument:
    """A document in a store that machines share."""

    def __init__(self, store: WorkStore, name: str) -> None:
        self._store = store
        self._name = name
        self._version = 0
        self._content: bytes | None = None
        self._is_changed = False
        self._changing = asyncio.Lock()

    @property
    def where(self) -> str:
        return f"the document {self._name!r} of the store"

    def read(self) -> bytes:
        if self._content is None:
            raise FileNotFoundError(self._name)
        return self._content

    def change(self, make: Callable[[], bytes]) -> None:
        self._content = make()
        self._is_changed = True

    async def refresh(self) -> None:
        async with self._changing:
            await self._fetch()

    async def update(self, action: Callable[[], Result]) -> Result:
        async with self._changing:
            for _ in range(ATTEMPTS):
                await self._fetch()
                result = action()
                if not self._is_changed:
                    return result
                assert self._content is not None
                if await self._store.put_document(self._name, self._content, version=self._version):
                    return result
            raise StoreUnavailable(f"{self.where} is changed by too many processes", hint="try again")

    async def _fetch(self) -> None:
        found = await self._store.document(self._name)
        self._version, self._content, self._is_changed = found.version, found.content, False


def open_document(store: Store, path: Path, *, max_bytes: int | None = None) -> Document:
    """The document of a name: in the store if machines share it, else the file at this path."""
    if isinstance(store, WorkStore) and store.address is not None:
        return SharedDocument(store, path.stem)
    return FileDocument(path, max_bytes=max_bytes)
