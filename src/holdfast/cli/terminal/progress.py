"""Progress on stderr: what is running and for how long, shown after half a second and only on a terminal.

On an ordinary terminal it is one line that is redrawn, and cleared before anything else is written. In plain mode it is a new
line every 15 seconds. A thread draws it, so that it keeps moving while the program computes.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO

SHOWN_AFTER_SECONDS = 0.5
_REDRAW_INTERVAL_SECONDS = 0.15
_PLAIN_INTERVAL_SECONDS = 15.0
_SPINNER = "|/-\\"
_CLEAR_LINE = "\r\x1b[K"
_MAX_WIDTH = 79


class ProgressIndicator:
    """Shows the text of `describe` while the block runs."""

    def __init__(
        self, describe: Callable[[], str], *, stream: TextIO | None = None, is_plain: bool | None = None
    ) -> None:
        self._describe = describe
        self._stream = stream or sys.stderr
        self._is_plain = is_linear() if is_plain is None else is_plain
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._hidden_count = 0
        self._is_drawn = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty() and not _visible:
            _visible.append(self)
            self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stopped.set()
            self._thread.join()
            _visible.remove(self)
            with self._lock:
                self._clear()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while something else is written or asked."""
        with self._lock:
            self._hidden_count += 1
            self._clear()
        try:
            yield
        finally:
            with self._lock:
                self._hidden_count -= 1

    def _run(self) -> None:
        if self._stopped.wait(SHOWN_AFTER_SECONDS):
            return
        while True:
            with self._lock:
                if not self._hidden_count and (doing := self._describe()):
                    self._draw(doing)
            if self._stopped.wait(_PLAIN_INTERVAL_SECONDS if self._is_plain else _REDRAW_INTERVAL_SECONDS):
                return

    def _draw(self, doing: str) -> None:
        seconds = time.monotonic() - self._started
        if self._is_plain:
            self._stream.write(f"  busy    {doing}, {seconds:.0f}s\n")
        else:
            spinner = _SPINNER[int(seconds * 4) % len(_SPINNER)]
            self._stream.write(
                f"{_CLEAR_LINE}{spinner} {seconds:.0f}s {doing}"[: _MAX_WIDTH + len(_CLEAR_LINE)]
            )
            self._is_drawn = True
        self._stream.flush()

    def _clear(self) -> None:
        if self._is_drawn:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()
            self._is_drawn = False


_visible: list[ProgressIndicator] = []
"""The indicator on the screen, if any. A process has one terminal, and every writer has to clear the line first."""


@contextmanager
def progress_hidden() -> Iterator[None]:
    """Hide the progress line, if there is one, while the block runs."""
    if not _visible:
        yield
        return
    with _visible[0].hidden():
        yield


def is_linear() -> bool:
    """Whether linear text without redraws is wanted: for a screen reader (HOLDFAST_PLAIN) or a simple terminal (TERM=dumb).

    NO_COLOR only removes colour.
    """
    return bool(os.environ.get("HOLDFAST_PLAIN")) or os.environ.get("TERM", "dumb") == "dumb"
