"""Checks of versions: Python, Holdfast and its libraries."""

import platform
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata

from holdfast.services.doctor.check_result import CheckResult

_MIN_PYTHON = (3, 11)
_LIBRARIES = (
    "msgspec",
    "pyyaml",
    "pydantic-monty",
    "pydantic-ai-slim",
    "mcp",
    "prompt-toolkit",
    "rich",
    "wcwidth",
    "httpx2",
)
_EXTRAS = {"wasmtime": "wasi", "xllamacpp": "local", "agent-client-protocol": "acp", "pgqueuer": "scale"}


def check_versions() -> Iterator[CheckResult]:
    """Report versions, missing libraries and extras that are not installed."""
    python = platform.python_version()
    detail = f"holdfast {_version('holdfast') or '(not installed)'}, Python {python}, SQLite {sqlite3.sqlite_version}, Linux {platform.release()}"
    is_new = sys.version_info >= _MIN_PYTHON
    yield CheckResult(
        part="versions",
        state="ok" if is_new else "bad",
        detail=detail,
        fix="" if is_new else "use Python 3.11 or newer",
    )
    missing = [name for name in _LIBRARIES if _version(name) is None]
    if missing:
        detail = f"not installed: {', '.join(missing)}"
        yield CheckResult(part="libraries", state="bad", detail=detail, fix=_install_command(missing))
    else:
        detail = ", ".join(
            f"{name} {_version(name)}" for name in ("pydantic-monty", "pydantic-ai-slim", "mcp")
        )
        yield CheckResult(part="libraries", state="ok", detail=detail)
    for name, extra in _EXTRAS.items():
        if _version(name) is None:
            detail = f"extra {extra!r} is not installed ({name})"
            yield CheckResult(
                part="libraries",
                state="note",
                detail=detail,
                fix=_install_command(_extra_requirements(extra) or [name]),
            )


def _install_command(requirements: list[str]) -> str:
    """The pip command for this Python. It names the requirements, because a registry may have an unrelated package of our name."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements])


def _extra_requirements(extra: str) -> list[str]:
    """The pinned requirements of an extra."""
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
