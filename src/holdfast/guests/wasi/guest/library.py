"""The standard library, imported while the component is built: what is not imported then does not exist later."""

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Iterator

_LEFT_OUT = frozenset(
    (
        "antigravity",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "test",
        "this",
        "tkinter",
        "turtle",
        "turtledemo",
        "venv",
    )
)


def import_everything() -> None:
    """Import each module that this build of CPython has; the ones that need threads, sockets or windows are skipped.

    Submodules too: the library imports many only at the moment of use, such as the codec for the names in a ZIP file.
    """
    for name in sorted(sys.stdlib_module_names - _LEFT_OUT):
        if name.startswith("__"):
            continue
        for each in (name, *_submodules(name)):
            with contextlib.suppress(
                BaseException
            ):  # a module may fail in any way it likes; then it is not there
                importlib.import_module(each)


def _submodules(name: str) -> Iterator[str]:
    """All modules below a package, but the ones that are programs or tests."""
    try:
        package = importlib.import_module(name)
    except BaseException:
        return
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}.", onerror=lambda _: None):
        last = found.name.rpartition(".")[2]
        if last not in ("__main__", "test", "tests"):
            yield found.name
