"""The roots of one server (`roots/list`): the workspace, and the folders of calls that were approved outside it.

A root is advice to the server about where it may work. The gate judges every call, whatever the roots are. A server can only
take folders as roots, so an approved file adds its folder, for as long as the approved call runs.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

ASK_SECONDS = 2.0
"""How long a server that asks for its roots may take to ask again after a change."""
FIRST_ASK_SECONDS = 0.25
"""How long to wait for a server that has never asked for its roots. Most servers never do."""
SETTLE_PINGS, PING_SECONDS = 5, 0.01
"""Round trips after the server received its roots. It checks them on disk, and a call should not arrive before that."""


class Roots:
    """The roots as the server may ask for them, and whether it has asked since the last change."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._extra: Counter[str] = Counter()
        self._changes = 0
        self._listed_changes = -1
        self._was_listed = asyncio.Event()

    @property
    def uris(self) -> tuple[tuple[str, str], ...]:
        """Every root: its URI and its name."""
        extra = [(Path(each).as_uri(), "approved") for each in sorted(self._extra)]
        return ((self._workspace.as_uri(), "workspace"), *extra)

    @property
    def has_extra(self) -> bool:
        """Whether a call is running that was approved outside the workspace."""
        return bool(self._extra)

    def list(self) -> tuple[tuple[str, str], ...]:
        """The roots, for the server that asks."""
        self._listed_changes = self._changes
        self._was_listed.set()
        return self.uris

    def add(self, folders: Sequence[str]) -> bool:
        """Add folders; returns whether the roots changed."""
        before = set(self._extra)
        self._extra.update(folders)
        return self._note_change(before)

    def remove(self, folders: Sequence[str]) -> bool:
        """Remove folders that no other call needs; returns whether the roots changed."""
        before = set(self._extra)
        self._extra = +(self._extra - Counter(folders))
        return self._note_change(before)

    def _note_change(self, before: set[str]) -> bool:
        if before == set(self._extra):
            return False
        self._changes += 1
        return True

    async def wait_until_listed(self, ping: Callable[[], Awaitable[object]]) -> None:
        """Wait until the server has asked for the current roots and had time to take them over."""
        try:
            async with asyncio.timeout(ASK_SECONDS if self._listed_changes >= 0 else FIRST_ASK_SECONDS):
                while self._listed_changes < self._changes:
                    self._was_listed.clear()
                    await self._was_listed.wait()
        except TimeoutError:
            return  # a server that does not ask for its roots does not restrict itself to them
        for _ in range(SETTLE_PINGS):
            await asyncio.sleep(PING_SECONDS)
            await ping()


def folder_of(path: str) -> str:
    """The folder that a server needs as a root to reach a path."""
    return path if os.path.isdir(path) else os.path.dirname(path)
