"""Pages: the rows in a SQLite file, read without SQLite, so that what is damaged in one place can be read in others.

Only leaf pages of tables are looked at, wherever they lie: the trees above them may be gone. Pages in the log beside
the file are newer versions of the same pages. See https://sqlite.org/fileformat2.html.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Column = None | int | float | bytes
"""As it lies in the file; text is bytes here."""

_LEAF = 0x0D
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_WAL_HEADER, _FRAME_HEADER = 32, 24
LARGEST_PAYLOAD = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One row of some table: its number and what is in it."""

    number: int
    columns: tuple[Column, ...]


def rows(database: Path, log: Path) -> Iterator[Row]:
    """Every row that can be read, the older versions of a page first. A row may come more than once."""
    content = database.read_bytes() if database.exists() else b""
    frames = log.read_bytes() if log.exists() else b""
    size = _page_size(content, frames)
    pages = {
        number: content[start : start + size]
        for number, start in enumerate(range(0, len(content) - size + 1, size), start=1)
    }
    yield from _rows_of(pages, pages)
    for number, page in _frames(frames, size):
        pages[number] = page
        yield from _rows_of({number: page}, pages)


def _page_size(content: bytes, frames: bytes) -> int:
    declared = int.from_bytes(content[16:18], "big")
    size = 65536 if declared == 1 else declared
    if content[:15] != b"SQLite format 3" or size < 512 or size & (size - 1):
        size = int.from_bytes(frames[8:12], "big") if len(frames) >= _WAL_HEADER else 4096
    return size if 512 <= size <= 65536 and not size & (size - 1) else 4096


def _frames(frames: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    salts = frames[16:24]
    for start in range(_WAL_HEADER, len(frames) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        # Frames with other salts are left over from before the log was last begun anew.
        if frames[start + 8 : start + 16] == salts:
            page = frames[start + _FRAME_HEADER : start + _FRAME_HEADER + size]
            yield int.from_bytes(frames[start : start + 4], "big"), page


def _rows_of(fresh: dict[int, bytes], pages: dict[int, bytes]) -> Iterator[Row]:
    for number, page in list(fresh.items()):
        head = 100 if number == 1 else 0
        if page[head] != _LEAF:
            continue
        count = int.from_bytes(page[head + 3 : head + 5], "big")
        for pointer in range(head + 8, min(head + 8 + 2 * count, len(page) - 1), 2):
            try:
                yield _cell(page, int.from_bytes(page[pointer : pointer + 2], "big"), pages)
            except (IndexError, ValueError, KeyError):
                continue


def _cell(page: bytes, start: int, pages: dict[int, bytes]) -> Row:
    length, position = _varint(page, start)
    number, position = _varint(page, position)
    if not 0 < length <= LARGEST_PAYLOAD:
        raise ValueError("no length that a row could have")
    local = _local_bytes(length, len(page))
    payload = page[position : position + local]
    following = int.from_bytes(page[position + local : position + local + 4], "big") if local < length else 0
    parts, have = [payload], len(payload)
    while have < length:
        overflow = pages[following]
        parts.append(overflow[4:])
        have += len(overflow) - 4
        following = int.from_bytes(overflow[:4], "big")
    return Row(number=number, columns=_record(b"".join(parts)[:length]))


def _local_bytes(length: int, usable: int) -> int:
    most = usable - 35
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    wanted = least + (length - least) % (usable - 4)
    return wanted if wanted <= most else least


def _record(payload: bytes) -> tuple[Column, ...]:
    size, position = _varint(payload, 0)
    kinds: list[int] = []
    while position < size:
        kind, position = _varint(payload, position)
        kinds.append(kind)
    columns: list[Column] = []
    for kind in kinds:
        length = _INTEGER_SIZES.get(kind, (kind - 12) // 2 if kind >= 12 else 8 if kind == 7 else 0)
        raw = payload[position : position + length]
        if len(raw) != length or kind in (10, 11):
            raise ValueError("a row that ends too early")
        position += length
        columns.append(_value(kind, raw))
    return tuple(columns)


def _value(kind: int, raw: bytes) -> Column:
    if kind in _INTEGER_SIZES:
        return int.from_bytes(raw, "big", signed=True)
    if kind in (8, 9):
        return kind - 8
    return raw if kind >= 12 else None


def _varint(content: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = content[position + place]
        if place == 8:
            return value << 8 | byte, position + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, position + place + 1
    raise ValueError("unreachable")
