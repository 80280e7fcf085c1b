"""Looking over a workspace for what changed, without reading what did not.

A file whose inode, size and times are as they were is taken to be as it was. Times have a grain: what was changed right
before it was looked at could be changed again within the same grain, so such a look is not trusted the next time.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from holdfast.world.commits import parents
from holdfast.world.descent import LinkInTheWay, Root
from holdfast.world.files import PlainFiles, is_abandoned
from holdfast.world.names import SCRATCH_PREFIX, parent_and_name
from holdfast.world.walk import walk

GRAIN_NS = 20_000_000
"""Coarser than the clock that stamps files on any kernel in use."""


class Sign(NamedTuple):
    """What tells whether a file changed."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Sign":
        """The sign of what was found."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)

    def is_settled(self, looked_ns: int) -> bool:
        """Whether a change after this look would show."""
        return max(self.modified_ns, self.changed_ns) + GRAIN_NS < looked_ns


class Look(NamedTuple):
    """One thing in the workspace, and when it was looked at."""

    path: str
    sign: Sign
    looked_ns: int


def look_everywhere(root: Root) -> Iterator[Look]:
    """Everything beneath a root; what killed writers left is removed on the way."""
    files = PlainFiles(root, allows_hard_links=True)
    for found in walk(root):
        if found.entry.name.startswith(SCRATCH_PREFIX):
            if is_abandoned(found.entry.name):
                with suppress(FileNotFoundError):
                    files.remove(found.path)
            continue
        with suppress(FileNotFoundError):
            yield _look(found.path, found.entry.stat(follow_symlinks=False))


def look_at(root: Root, paths: Iterable[str]) -> Iterator[Look]:
    """These paths, the folders above them and everything below them."""
    seen: set[str] = set()
    for path in paths:
        for each in (*reversed(parents(path)), path):
            if each not in seen:
                seen.add(each)
                with suppress(FileNotFoundError, NotADirectoryError, LinkInTheWay):
                    yield from _look_below(root, each, is_deep=each == path)


def _look_below(root: Root, path: str, *, is_deep: bool) -> Iterator[Look]:
    parent, name = parent_and_name(path)
    with root.folder(parent) as folder:
        found = os.lstat(name, dir_fd=folder)
    yield _look(path, found)
    if is_deep and stat.S_ISDIR(found.st_mode):
        for each in walk(root, path):
            yield _look(each.path, each.entry.stat(follow_symlinks=False))


def _look(path: str, found: os.stat_result) -> Look:
    return Look(path, Sign.of(found), time.time_ns())
