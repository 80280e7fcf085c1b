"""The standard library and the event loop inside the component.

A module that is not imported while the component is built does not exist later. The event loop has no sockets, because WASI has none:
timers and tasks work, the network does not exist.
"""

import asyncio
import contextlib
import importlib
import pkgutil
import sys
import time
from collections.abc import Coroutine, Iterator
from typing import Any


class _TimerSelector:
    """The selector of the loop: nothing ever becomes readable, so it only waits."""

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("this task waits for something that cannot happen here: no timer is scheduled")
        if timeout > 0:
            time.sleep(timeout)
        return []


class SocketlessLoop(asyncio.base_events.BaseEventLoop):
    """An event loop for the coroutines, timers and callbacks of one thread."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _TimerSelector()

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no external events."""

    def _write_to_self(self) -> None:
        """There is no other thread to wake this one."""


def install_event_loop() -> None:
    """Make `asyncio.run` and `new_event_loop` use this loop."""
    policy = asyncio.events._get_event_loop_policy()  # type: ignore[attr-defined]
    type(policy)._loop_factory = SocketlessLoop


def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run code that awaits at its top level."""
    return asyncio.run(coroutine)


_EXCLUDED = frozenset(
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
    """Import each module of this CPython. Modules that need threads, sockets or Windows fail and are skipped.

    Submodules too: the library imports many only when they are used, such as the codec for the names in a ZIP file.
    """
    for name in sorted(sys.stdlib_module_names - _EXCLUDED):
        if name.startswith("__"):
            continue
        for each in (name, *_submodules(name)):
            # A module may fail in any way. It is then missing.
            with contextlib.suppress(BaseException):
                importlib.import_module(each)


def _submodules(name: str) -> Iterator[str]:
    """All modules below a package, except programs and tests."""
    try:
        package = importlib.import_module(name)
    except BaseException:
        return
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}.", onerror=lambda _: None):
        last = found.name.rpartition(".")[2]
        if last not in ("__main__", "test", "tests"):
            yield found.name
