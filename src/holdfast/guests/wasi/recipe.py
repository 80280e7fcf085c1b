"""What makes one compiled component another: sources, versions and processor. Its name says all of it."""

import hashlib
import platform
from functools import cache
from pathlib import Path

GUEST = Path(__file__).parent / "guest"
WIT = GUEST / "sandbox.wit"
_FORMAT = "1"
"""Counts what the other ingredients do not show, such as the settings of the compiler."""


@cache
def version_of(distribution: str) -> str:
    """The version of `wasmtime` or `componentize-py` that is installed."""
    from importlib import metadata  # a tenth of a second on a cold disk, and no worker needs it

    return metadata.version(distribution)


def name() -> str:
    """A name under which only the same component can lie."""
    ingredients = hashlib.sha256()
    for part in (
        _FORMAT,
        version_of("wasmtime"),
        version_of("componentize-py"),
        platform.machine(),
        _processor(),
    ):
        ingredients.update(part.encode() + b"\0")
    for source in sorted([*GUEST.glob("*.py"), WIT]):
        ingredients.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"python-{ingredients.hexdigest()[:24]}"


def _processor() -> str:
    """What the compiler may make use of: native code for one processor may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
