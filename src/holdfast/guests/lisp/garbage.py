"""The host's garbage collector, told to wait while a program is read, expanded, compiled, saved or restored."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection meanwhile. What is built here is a tree that stays: looking for garbage in it again and again while
    it grows took four times as long as building it. Only around work that is bounded and does not wait."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
