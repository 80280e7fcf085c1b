"""The standard library, imported while the component is built: what is not imported then does not exist later.

An event loop without sockets, since WASI has none: timers and tasks work, the network does not exist.
"""

import asyncio
import contextlib
import importlib
import pkgutil
import sys
import time
from collections.abc import Coroutine, Iterator
from typing import Any


class _Sleeper:
    """Stands where a loop keeps its selector: nothing ever becomes readable, time passes."""

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("this task waits for something that cannot happen here: nothing is scheduled")
        if timeout > 0:
            time.sleep(timeout)
        return []


class SocketlessLoop(asyncio.base_events.BaseEventLoop):
    """Runs coroutines, timers and callbacks of one thread."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Sleeper()

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing ever happens outside."""

    def _write_to_self(self) -> None:
        """There is no other thread to wake this one."""


def install_event_loop() -> None:
    """Make `asyncio.run` and `new_event_loop` give this loop."""
    policy = asyncio.events._get_event_loop_policy()  # type: ignore[attr-defined]
    type(policy)._loop_factory = SocketlessLoop


def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run code that awaits at its top level."""
    return asyncio.run(coroutine)


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
