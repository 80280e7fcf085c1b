"""How a program is put under a warden, which takes it and all it started down with us."""

import sys
from collections.abc import Sequence
from pathlib import Path

_WARDEN = Path(__file__).with_name("warden.py")


def under_warden(lifeline: int, command: Sequence[str]) -> tuple[str, ...]:
    """The command line for a command under a warden; `lifeline` is the reading end of a pipe, handed down with it."""
    return (sys.executable, "-I", "-S", str(_WARDEN), str(lifeline), *command)
