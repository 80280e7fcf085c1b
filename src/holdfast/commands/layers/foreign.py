"""Files of other owners: the kernel cannot copy them into a layer, so programs could not change them.

The sandbox's user namespace has one user and one group. A change of a file of another one, such as the shared group of a
project, or of anybody else where the person is root, fails with "Permission denied" or "Value too large for defined data
type". What the person may write is copied into the layer beforehand, under the person's own user and group.
"""

import os
from collections.abc import Iterable

from holdfast.commands.init import beneath
from holdfast.commands.layers.entries import (
    Signature,
    open_file_beneath,
    shows_base,
    signature_of,
    status_beneath,
)
from holdfast.core import Value


class _Copy(Value):
    source: Signature
    """Of the file in the base."""
    copy: Signature


class AdoptedFiles:
    """The copies of foreign files in a layer. Nobody changed them, so they are not effects."""

    def __init__(self, layer: int, base: int) -> None:
        self._layer = layer
        self._base = base
        self._copies: dict[str, _Copy] = {}

    def adopt(self, folders: Iterable[str], files: Iterable[str]) -> None:
        """Copy what is not in the layer yet, unless programs removed or replaced it. Raises OSError."""
        for folder in folders:
            if status_beneath(self._layer, folder) is None and shows_base(self._layer, folder):
                os.close(beneath.open_folder(self._layer, folder, mode_of=self._base, create=True))
        copies: dict[str, _Copy] = {}
        for path in files:
            status = status_beneath(self._layer, path)
            if status is None and shows_base(self._layer, path):
                copy = self._copy(path)
                if copy is not None:
                    copies[path] = copy
            elif status is not None and self.is_copy(path, status):
                copies[path] = self._copies[path]
        self._copies = copies

    def is_copy(self, path: str, status: os.stat_result) -> bool:
        """Whether an entry of the layer is a copy as it was made."""
        copy = self._copies.get(path)
        return copy is not None and copy.copy == signature_of(status)

    def is_current(self, path: str) -> bool:
        """Whether the file of the base is the one that was copied."""
        source = status_beneath(self._base, path)
        return source is not None and signature_of(source) == self._copies[path].source

    def stale(self) -> set[str]:
        """The copies whose files changed in the base."""
        return {path for path in self._copies if not self.is_current(path)}

    def clear(self) -> None:
        """Forget the copies: the layer is empty."""
        self._copies = {}

    def _copy(self, path: str) -> _Copy | None:
        file = open_file_beneath(self._base, path)
        if file is None:
            return None
        with open(file, "rb") as opened:
            source = os.fstat(file)
            mode = source.st_mode & 0o777
            written = beneath.write_file(self._layer, path, opened.read(), mode, mode_of=self._base)
        return _Copy(source=signature_of(source), copy=signature_of(written))
