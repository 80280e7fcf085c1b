"""Quarantine: what is asked of a file from elsewhere before anything of it is read: what it is, and how far it would grow."""

import os
import re
import stat
import zipfile
from pathlib import Path
from typing import IO

from holdfast.core.errors import InvalidInput

LARGEST_TOTAL = 4 * 1024**3
LARGEST_JOURNAL = 1024**3
"""A journal is held in memory as a whole, contents one at a time."""
MOST_ENTRIES = 100_000
HARMLESS_SIZE = 64 * 1024**2
MOST_EXPANSION = 200
_NAME = re.compile(r"manifest\.json|events\.jsonl|verify\.py|blobs/[0-9a-f]{64}")
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
WANTED = "give a file that holdfast export wrote"


def open_regular(path: Path) -> IO[bytes]:
    """The file, if it is a plain one. Raises OSError, ValueError."""
    # Not waiting: a pipe or a device would keep us here for ever, or never come to an end.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("no plain file")
    return os.fdopen(descriptor, "rb")


def refuse_hostile(path: Path, archive: zipfile.ZipFile) -> None:
    """Raises InvalidInput where an archive is not one of ours, or would do harm by being unpacked."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    reason = None
    if len(entries) > MOST_ENTRIES or len(set(names)) != len(names):
        reason = "has too many entries, or one twice"
    elif not all(_NAME.fullmatch(name) for name in names):
        reason = "has an entry that does not belong there"
    elif any(entry.flag_bits & 1 or entry.compress_type not in _PACKINGS for entry in entries):
        reason = "is encrypted, or packed in a way that we do not pack"
    elif sum(entry.file_size for entry in entries) > LARGEST_TOTAL or any(map(_is_bomb, entries)):
        reason = "would grow beyond all measure"
    if reason is not None:
        raise InvalidInput(f"{path.name!r} {reason}; nothing of it was kept", hint=WANTED)


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    if not entry.filename.startswith("blobs/") and entry.file_size > LARGEST_JOURNAL:
        return True
    return entry.file_size > HARMLESS_SIZE and entry.file_size > MOST_EXPANSION * max(entry.compress_size, 1)
