"""Files of the host outside the workspace, for calls that were approved for exactly these paths.

A path is the real path that was judged and shown. No symlink is followed: one that was swapped in after the judgement is
refused, and nothing is opened.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.core.errors import PathRefused
from holdfast.world.folder.files import PlainFiles
from holdfast.world.folder.folder_world import FolderWorld
from holdfast.world.paths.names import relative
from holdfast.world.paths.open_beneath import Opener, SymlinkEncountered

_T = TypeVar("_T")


class OutsideWorld(FolderWorld):
    """The files of the host by their real, absolute path. It has no quota, and protected names stay closed."""

    def __init__(self, *, opener: Opener | None = None) -> None:
        super().__init__(Path("/"), opener=opener)
        # The person approved the file at this path, however many names it has.
        self._files = self._names = PlainFiles(self.root, allows_hard_links=True)

    def resolve(self, path: str) -> str:
        return relative(path, ("/",))

    def _at(
        self, given: str, operation: Callable[[str], _T], *, is_change: bool = False, is_name: bool = False
    ) -> _T:
        path = self.resolve(given)
        self._check(path, is_change=is_change)
        try:
            return operation(path)
        except SymlinkEncountered:
            raise PathRefused(
                f"{given!r} has become a symlink since it was approved", hint="make the call again"
            ) from None
