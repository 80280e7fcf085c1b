"""Whether git tracks a path, from the index of the base's repository: a tracked file is never ignored."""

import os
import re
import struct
from bisect import bisect_left
from functools import cached_property
from pathlib import Path

_MAX_INDEX_BYTES = 256 << 20
_HEAD = struct.Struct(">4sII")
_EXTENDED = 0x4000


class TrackedPaths:
    """The paths in a repository's index, read when the first question needs them. Paths are relative to `within`."""

    def __init__(self, git: Path, *, within: str = "") -> None:
        self._git = git
        self._prefix = os.fsencode(f"{within}/") if within else b""

    def has(self, path: str, *, is_folder: bool) -> bool:
        """Whether this file, or any file in this folder, is tracked."""
        wanted = self._prefix + os.fsencode(path) + (b"/" if is_folder else b"")
        version, data = self._index
        # Most questions end here: before version 4 each path is in the index as it is.
        if not data or (version < 4 and wanted not in data):
            return False
        paths = self._paths
        at = bisect_left(paths, wanted)
        if at == len(paths):
            return False
        return paths[at].startswith(wanted) if is_folder else paths[at] == wanted

    @cached_property
    def _index(self) -> tuple[int, bytes]:
        folder = self._git
        try:
            if folder.is_file():
                # A linked worktree or a submodule: the file names the real folder.
                named = re.match(
                    r"gitdir: (.+)", folder.read_text(encoding="utf-8", errors="surrogateescape")
                )
                folder = (folder.parent / named[1].strip()) if named else folder
            with (folder / "index").open("rb") as file:
                data = file.read(_MAX_INDEX_BYTES)
        except OSError:
            return 0, b""
        if len(data) < _HEAD.size or data[:4] != b"DIRC":
            return 0, b""
        return _HEAD.unpack_from(data)[1], data

    @cached_property
    def _paths(self) -> list[bytes]:
        """All paths in order. A damaged index ends the list early."""
        version, data = self._index
        count = _HEAD.unpack_from(data)[2]
        at = _HEAD.size
        paths: list[bytes] = []
        previous = b""
        try:
            for _ in range(count):
                start = at
                flags = struct.unpack_from(">H", data, at + 60)[0]
                at += 62 + (2 if flags & _EXTENDED else 0)
                if version >= 4:
                    dropped, at = _varint(data, at)
                    end = data.index(b"\0", at)
                    previous = previous[: len(previous) - dropped] + data[at:end]
                    at = end + 1
                else:
                    end = data.index(b"\0", at)
                    previous = data[at:end]
                    at = start + ((end - start + 8) & ~7)
                paths.append(previous)
        except (struct.error, ValueError, IndexError):
            pass
        return paths


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
