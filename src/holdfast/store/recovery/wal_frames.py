"""Reads the frames of a write-ahead log without SQLite, and finds how far SQLite would read it.

SQLite reads the log up to the first frame with a wrong checksum and silently ignores the rest. After a power failure,
that is what was never acknowledged; after damage, it can be acknowledged commits. See https://sqlite.org/walformat.html.
"""

import struct
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from holdfast.core import Value

HEADER, FRAME_HEADER = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683


class Frame(Value, kw_only=False):
    """A page in the log: its number, its bytes, and whether it ends a commit."""

    number: int
    ends_commit: bool
    page: bytes


def page_size(log: bytes) -> int:
    """Return the page size in the log's header; 0 if there is no header."""
    return int.from_bytes(log[8:12], "big") if len(log) >= HEADER else 0


def read_frames(log: bytes, size: int) -> list[Frame]:
    """Read every frame since the log was last reset, whether its checksum is right or not."""
    starts = range(HEADER, len(log) - FRAME_HEADER - size + 1, FRAME_HEADER + size)
    salts = _salts(log)
    return [
        Frame(
            number=int.from_bytes(log[start : start + 4], "big"),
            ends_commit=log[start + 4 : start + 8] != bytes(4),
            page=log[start + FRAME_HEADER : start + FRAME_HEADER + size],
        )
        for start in starts
        if log[start + 8 : start + 16] == salts
    ]


def has_lost_commits(path: Path) -> bool:
    """Whether SQLite would ignore a commit that was durable, which is known if something was written to the log after it."""
    log = path.read_bytes() if path.exists() else b""
    size = page_size(log)
    if len(log) <= HEADER:
        return False
    if not _is_header_valid(log):
        return any(islice(log, HEADER, None))
    followed, ends = _count_readable(log, size), _ends_of_commits(log, size)
    beyond = [place for place, ends_commit in ends if place >= followed and ends_commit]
    return bool(beyond) and ends[-1][0] > beyond[0]


def _ends_of_commits(log: bytes, size: int) -> Sequence[tuple[int, bool]]:
    salts, step = _salts(log), FRAME_HEADER + size
    return [
        (place, log[start + 4 : start + 8] != bytes(4))
        for place, start in enumerate(range(HEADER, len(log) - step + 1, step))
        if log[start + 8 : start + 16] == salts
    ]


def _count_readable(log: bytes, size: int) -> int:
    """Count the frames that SQLite would read."""
    order = _order(log)
    sums = struct.unpack_from(">2I", log, 24)
    salts, step = _salts(log), FRAME_HEADER + size
    starts = range(HEADER, len(log) - step + 1, step)
    for place, start in enumerate(starts):
        if log[start + 8 : start + 16] != salts:
            return place
        sums = _checksum(log[start : start + 8], order, sums)
        sums = _checksum(log[start + FRAME_HEADER : start + step], order, sums)
        if sums != struct.unpack_from(">2I", log, start + 16):
            return place
    return len(starts)


def _is_header_valid(log: bytes) -> bool:
    size = page_size(log)
    if int.from_bytes(log[:4], "big") not in (_LITTLE, _BIG) or not 512 <= size <= 65536 or size & (size - 1):
        return False
    return _checksum(log[:24], _order(log), (0, 0)) == struct.unpack_from(">2I", log, 24)


def _salts(log: bytes) -> bytes:
    # Frames with other salts are older than the last reset. If the header is damaged, the first frame has the salts.
    if len(log) < HEADER + FRAME_HEADER or _is_header_valid(log):
        return log[16:24]
    return log[HEADER + 8 : HEADER + 16]


def _order(log: bytes) -> str:
    return "<" if int.from_bytes(log[:4], "big") == _LITTLE else ">"


def _checksum(content: bytes, order: str, sums: tuple[int, ...]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
