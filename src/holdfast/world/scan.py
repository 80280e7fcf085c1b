"""Looking over a workspace for what changed, without reading what did not.

A file whose inode, size and times are as they were is taken to be as it was. Times have a grain: what was changed right
before it was looked at could be changed again within the same grain, so such a look is not trusted the next time.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from holdfast.world.descent import Root
from holdfast.world.files import PlainFiles
from holdfast.world.names import SCRATCH_PREFIX
from holdfast.world.scratch import is_abandoned
from holdfast.world.walk import walk

GRAIN_NS = 20_000_000
"""Coarser than the clock that stamps files on any kernel in use."""

Sign = tuple[int, int, int, int, int]
"""What tells whether a file changed: inode, size, both times, and the mode with the kind."""


class Look(NamedTuple):
    """One thing in the workspace. `is_settled` is whether a later change would show in its sign."""

    path: str
    sign: Sign
    is_settled: bool

    @property
    def size(self) -> int:
        """Bytes of content."""
        return self.sign[1]

    @property
    def mode(self) -> int:
        """Kind and permissions."""
        return self.sign[4]


def look_everywhere(root: Root) -> Iterator[Look]:
    """Everything beneath a root; what killed writers left is removed on the way."""
    files = PlainFiles(root, allows_hard_links=True)
    began_ns = time.time_ns()
    for found in walk(root):
        if found.entry.name.startswith(SCRATCH_PREFIX):
            if is_abandoned(found.entry.name):
                with suppress(FileNotFoundError):
                    files.remove(found.path)
            continue
        try:
            seen = found.entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        yield _look(found.path, seen, began_ns)


def _look(path: str, seen: os.stat_result, began_ns: int) -> Look:
    modified_ns, changed_ns = seen.st_mtime_ns, seen.st_ctime_ns
    sign = (seen.st_ino, seen.st_size, modified_ns, changed_ns, seen.st_mode)
    return Look(path, sign, modified_ns + GRAIN_NS < began_ns and changed_ns + GRAIN_NS < began_ns)
