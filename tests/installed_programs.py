"""Programs that tests install: cached inside the virtual environment, so that nothing is left elsewhere.

`python -m tests.prepare` fills the cache before the tests run, outside their time limits.
"""

import sys
from pathlib import Path
from typing import NoReturn

import pytest


class NotInstalled(Exception):
    """A third-party program could not be installed."""


def cache_folder(name: str) -> Path:
    """A folder that lives as long as the virtual environment."""
    return Path(sys.prefix) / "test-cache" / name


def skip_loudly(what: str) -> NoReturn:
    """Skip a test because a program is missing, and say so where people see it."""
    line = f"*** NOT TESTED against {what}: it is not installed; make test installs it where it can ***"
    print(f"\n{line}", file=sys.__stderr__, flush=True)
    pytest.skip(line)


def first_error(printed: str) -> str:
    """The line in which npm or pip says why it failed; the last lines only name a log file."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no output")
