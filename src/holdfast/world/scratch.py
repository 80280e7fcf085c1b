"""Scratch files: new content on its way, beside the file it will replace. The name says who writes it."""

import os
import secrets

from holdfast.world.names import SCRATCH_PREFIX


def scratch_name() -> str:
    """A name that nobody else takes; no guest can name it."""
    return f"{SCRATCH_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"


def is_abandoned(name: str) -> bool:
    """Whether a name is that of a scratch file whose writer is dead."""
    if not name.startswith(SCRATCH_PREFIX):
        return False
    try:
        os.kill(int(name[len(SCRATCH_PREFIX) :].partition("-")[0]), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return True
    except PermissionError:
        return False
    return False
