"""Files in a folder of ours that somebody else may have put there: read without being led astray, and taken away whatever they are."""

import os
import shutil
import stat
from pathlib import Path

MAX_BYTES = 65_536


def read_plain(path: Path, *, max_bytes: int) -> bytes:
    """The content of a plain file of this user. Raises FileNotFoundError, or an OSError that says what is there instead."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError("it is no plain file")
        if state.st_uid != os.geteuid():
            raise OSError("it belongs to another user")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(f"it has more than {max_bytes:,} bytes")
    return content


def read_own(path: Path) -> bytes | None:
    """The content of a small plain file of this user; None where there is no file. Anything else reads as nothing."""
    try:
        return read_plain(path, max_bytes=MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError:
        return b""  # a link, too large, or not ours to read: no clear word


def remove(path: Path) -> None:
    """Take away whatever stands under this name, be it a folder. What cannot be taken away is left alone."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
