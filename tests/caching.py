"""Where tests keep what takes long to get: inside the virtual environment, so that nothing is left behind elsewhere.

`python -m tests.warming` fills it before the tests run, outside of their time limits.
"""

import sys
from pathlib import Path
from typing import NoReturn

import pytest


class NotInstalled(Exception):
    """A program of other people could not be had."""


def cache_folder(name: str) -> Path:
    """A folder that lasts as long as the environment does."""
    return Path(sys.prefix) / "test-cache" / name


def skip_loudly(what: str) -> NoReturn:
    """Skip a test for want of a program, and say so where it is seen."""
    line = f"*** NOT TESTED against {what}: it is not installed; make test installs it where it can ***"
    print(f"\n{line}", file=sys.__stderr__, flush=True)
    pytest.skip(line)
