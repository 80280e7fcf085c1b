"""Frames: the pages in the log beside a database, read without SQLite, and how far SQLite would follow them.

SQLite follows the log up to the first frame whose checksum is wrong and leaves out the rest without a word: after a loss of
power that is what was never acknowledged, but after damage it is commits that were. See https://sqlite.org/walformat.html.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

HEADER, FRAME_HEADER = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683


@dataclass(frozen=True, slots=True)
class Frame:
    """A page as the log has it: its number, its bytes, and whether a commit ends with it."""

    number: int
    ends_commit: bool
    page: bytes


def page_size(log: bytes) -> int:
    """What the log says of the size of a page; 0 where it says nothing."""
    return int.from_bytes(log[8:12], "big") if len(log) >= HEADER else 0


def read_frames(log: bytes, size: int) -> list[Frame]:
    """Every frame since the log was last begun anew, sound or not."""
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
    """Whether a commit that was on the disk is beyond where SQLite stops: something was written to the log after it."""
    log = path.read_bytes() if path.exists() else b""
    size = page_size(log)
    if len(log) <= HEADER:
        return False
    if not _is_header_sound(log):
        return any(islice(log, HEADER, None))
    followed, ends = _followed(log, size), _ends_of_commits(log, size)
    beyond = [place for place, ends_commit in ends if place >= followed and ends_commit]
    return bool(beyond) and ends[-1][0] > beyond[0]


def _ends_of_commits(log: bytes, size: int) -> Sequence[tuple[int, bool]]:
    salts, step = _salts(log), FRAME_HEADER + size
    return [
        (place, log[start + 4 : start + 8] != bytes(4))
        for place, start in enumerate(range(HEADER, len(log) - step + 1, step))
        if log[start + 8 : start + 16] == salts
    ]


def _followed(log: bytes, size: int) -> int:
    """How many frames SQLite follows."""
    order = _order(log)
    sums = struct.unpack_from(">2I", log, 24)
    salts, step = _salts(log), FRAME_HEADER + size
    starts = range(HEADER, len(log) - step + 1, step)
    for place, start in enumerate(starts):
        if log[start + 8 : start + 16] != salts:
            return place
        sums = _summed(log[start : start + 8], order, sums)
        sums = _summed(log[start + FRAME_HEADER : start + step], order, sums)
        if sums != struct.unpack_from(">2I", log, start + 16):
            return place
    return len(starts)


def _is_header_sound(log: bytes) -> bool:
    size = page_size(log)
    if int.from_bytes(log[:4], "big") not in (_LITTLE, _BIG) or not 512 <= size <= 65536 or size & (size - 1):
        return False
    return _summed(log[:24], _order(log), (0, 0)) == struct.unpack_from(">2I", log, 24)


def _salts(log: bytes) -> bytes:
    # Frames with other salts are left over from before. Where the header cannot be believed, the first frame is asked.
    if len(log) < HEADER + FRAME_HEADER or _is_header_sound(log):
        return log[16:24]
    return log[HEADER + 8 : HEADER + 16]


def _order(log: bytes) -> str:
    return "<" if int.from_bytes(log[:4], "big") == _LITTLE else ">"


def _summed(content: bytes, order: str, sums: tuple[int, ...]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
