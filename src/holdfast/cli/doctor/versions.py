"""Versions: of Python, of Holdfast, and of the libraries it stands on."""

import platform
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata

from holdfast import __version__
from holdfast.cli.doctor.finding import CheckResult

_MIN_PYTHON = (3, 11)
_LIBRARIES = (
    "msgspec",
    "pyyaml",
    "pydantic-monty",
    "pydantic-ai-slim",
    "mcp",
    "prompt-toolkit",
    "rich",
    "httpx2",
)
_EXTRAS = {"wasmtime": "wasi", "xllamacpp": "local", "agent-client-protocol": "acp"}


def check_versions() -> Iterator[CheckResult]:
    """What runs here, what is missing, and which extras could be had."""
    python = platform.python_version()
    told = f"holdfast {__version__}, Python {python}, SQLite {sqlite3.sqlite_version}, Linux {platform.release()}"
    is_new = sys.version_info >= _MIN_PYTHON
    yield CheckResult(
        part="versions",
        state="ok" if is_new else "bad",
        told=told,
        fix="" if is_new else "use Python 3.11 or newer",
    )
    missing = [name for name in _LIBRARIES if _version(name) is None]
    if missing:
        told = f"not installed: {', '.join(missing)}"
        yield CheckResult(part="libraries", state="bad", told=told, fix=_install_command(missing))
    else:
        told = ", ".join(f"{name} {_version(name)}" for name in ("pydantic-monty", "pydantic-ai-slim", "mcp"))
        yield CheckResult(part="libraries", state="ok", told=told)
    for name, extra in _EXTRAS.items():
        if _version(name) is None:
            told = f"extra {extra!r} is not installed ({name})"
            yield CheckResult(
                part="libraries",
                state="note",
                told=told,
                fix=_install_command(_extra_requirements(extra) or [name]),
            )


def _install_command(requirements: list[str]) -> str:
    """By what they are called, and for this very Python: whoever has our name in a registry may not be us."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements])


def _extra_requirements(extra: str) -> list[str]:
    """What an extra stands on, in the versions it was tried with."""
    try:
        named = [each.partition(";") for each in metadata.requires("holdfast") or ()]
    except metadata.PackageNotFoundError:
        return []
    return [requirement for requirement, _, marker in named if marker.split() == ["extra", "==", repr(extra)]]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
