"""What the code prints, handed to the host early enough that a run which is killed still shows it."""

import io
import time
from collections.abc import Callable
from typing import TextIO

from .limits import LimitReached

_AT_ONCE = 64
"""So many first writes go out at once; each costs a step out of the sandbox, a flood of them is gathered."""
_GATHERED_SECONDS = 0.02
_GATHERED_BYTES = 32 << 10


class Output(io.TextIOBase, TextIO):
    """Standard output and error of a run in one stream, bounded."""

    def __init__(self, show: Callable[[str], None], limit_bytes: int) -> None:
        self._show = show
        self._left = limit_bytes
        self._limit = limit_bytes
        self._writes = 0
        self._waiting: list[str] = []
        self._waiting_bytes = 0
        self._flushed = time.monotonic()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._left <= 0:
            raise LimitReached(f"the code printed more than {self._limit} bytes")
        content = text.encode("utf-8", "replace")
        room, self._left = self._left, self._left - len(content)
        if self._left < 0:
            self._push(content[:room].decode("utf-8", "ignore"), room)
            self.flush()
            raise LimitReached(f"the code printed more than {self._limit} bytes")
        self._push(content.decode("utf-8"), len(content))
        return len(text)

    def flush(self) -> None:
        if not self._waiting:
            return
        text, self._waiting, self._waiting_bytes = "".join(self._waiting), [], 0
        self._flushed = time.monotonic()
        self._show(text)

    def _push(self, text: str, size: int) -> None:
        self._waiting.append(text)
        self._waiting_bytes += size
        self._writes += 1
        if not text.endswith("\n") and self._waiting_bytes < _GATHERED_BYTES:
            return
        is_early = self._writes <= _AT_ONCE
        is_due = is_early or self._waiting_bytes >= _GATHERED_BYTES
        if is_due or time.monotonic() - self._flushed > _GATHERED_SECONDS:
            self.flush()
