"""Reads the rows of a SQLite file without SQLite, so that damage in one place does not hide the rest.

Every page that can contain rows is read, because the B-trees above may be lost. Pages in the write-ahead log
(`wal_frames`) are newer versions of the same pages. See https://sqlite.org/fileformat2.html.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.store.recovery.wal_frames import page_size, read_frames
from holdfast.store.sqlite.database import PAGE_BYTES

Column = None | int | float | bytes
"""A value as stored; text is bytes."""

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of a table or index: its number (0 if it has none), its columns, and whether its page has no newer version."""

    number: int
    columns: tuple[Column, ...]
    is_current: bool


def read_rows(database: Path, log: Path) -> Iterator[PageRow]:
    """Yield every readable row, older versions of a page first. A row can occur more than once."""
    content = database.read_bytes() if database.exists() else b""
    written = log.read_bytes() if log.exists() else b""
    size = _page_size(content, written)
    frames = read_frames(written, size)
    newest = {frame.number: place for place, frame in enumerate(frames)}
    pages = {
        number: content[start : start + size]
        for number, start in enumerate(range(0, len(content) - size + 1, size), start=1)
    }
    for number in list(pages):
        yield from _rows_of(number, pages, is_current=number not in newest)
    for place, frame in enumerate(frames):
        pages[frame.number] = frame.page
        yield from _rows_of(frame.number, pages, is_current=newest[frame.number] == place)


def _page_size(content: bytes, log: bytes) -> int:
    declared = int.from_bytes(content[16:18], "big")
    size = 65536 if declared == 1 else declared
    if content[:15] != b"SQLite format 3" or size < 512 or size & (size - 1):
        size = page_size(log)
    return size if 512 <= size <= 65536 and not size & (size - 1) else PAGE_BYTES


def _rows_of(number: int, pages: dict[int, bytes], *, is_current: bool) -> Iterator[PageRow]:
    page = pages[number]
    head = 100 if number == 1 else 0
    kind = page[head]
    if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
        return
    first = head + (12 if kind == _INDEX_INTERIOR else 8)
    count = int.from_bytes(page[head + 3 : head + 5], "big")
    for pointer in range(first, min(first + 2 * count, len(page) - 1), 2):
        start = int.from_bytes(page[pointer : pointer + 2], "big")
        try:
            row, columns = _cell(page, kind, start, pages)
        except (IndexError, ValueError, KeyError):
            continue
        yield PageRow(number=row, columns=columns, is_current=is_current)


def _cell(page: bytes, kind: int, start: int, pages: dict[int, bytes]) -> tuple[int, tuple[Column, ...]]:
    length, position = _varint(page, start + 4 if kind == _INDEX_INTERIOR else start)
    number = 0
    if kind == _TABLE_LEAF:
        number, position = _varint(page, position)
    if not 0 < length <= min(MAX_PAYLOAD_BYTES, len(pages) * len(page)):
        raise ValueError("an impossible row length")
    local = _local_bytes(length, len(page), is_table=kind == _TABLE_LEAF)
    payload = page[position : position + local]
    following = int.from_bytes(page[position + local : position + local + 4], "big") if local < length else 0
    parts, have = [payload], len(payload)
    while have < length:
        overflow = pages[following]
        parts.append(overflow[4:])
        have += len(overflow) - 4
        following = int.from_bytes(overflow[:4], "big")
    return number, _record(b"".join(parts)[:length])


def _local_bytes(length: int, usable: int, *, is_table: bool) -> int:
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
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
            raise ValueError("a truncated row")
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
