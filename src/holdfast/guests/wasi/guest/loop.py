"""An event loop without sockets, since WASI has none: timers and tasks work, the network does not exist."""

import asyncio
import time
from collections.abc import Coroutine
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


def install() -> None:
    """Make `asyncio.run` and `new_event_loop` give this loop."""
    policy = asyncio.events._get_event_loop_policy()  # type: ignore[attr-defined]
    type(policy)._loop_factory = SocketlessLoop


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run code that awaits at its top level."""
    return asyncio.run(coroutine)
