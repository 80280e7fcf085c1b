"""PNG files as pixels, for terminals that take pixels and not files. Other forms than 8 bits a channel, not interlaced, are not read."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_PIXELS = 2 << 20
"""A larger picture takes seconds to read in Python."""
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By colour type: grey, RGB, palette, grey with alpha, RGB with alpha."""
_INDEXED = 3
_OPAQUE = 128

Pixel = tuple[int, int, int] | None
"""Red, green and blue; None where the picture is transparent."""


class Header(NamedTuple):
    """The start of a file."""

    width: int
    height: int
    depth: int
    colour_type: int
    is_interlaced: bool


def read_header(content: bytes) -> Header | None:
    """The size and form of a picture; None if it is not a PNG."""
    if not content.startswith(SIGNATURE) or content[12:16] != b"IHDR" or len(content) < 29:
        return None
    width, height = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    if not width or not height:
        return None
    return Header(width, height, content[24], content[25], bool(content[28]))


def read_pixels(content: bytes, width: int, height: int) -> list[list[Pixel]]:
    """The picture in this size, in rows: the nearest pixel of each place. Empty if it is damaged or of another form."""
    header = read_header(content)
    if (
        header is None
        or header.is_interlaced
        or header.depth != 8
        or header.colour_type not in _CHANNELS
        or header.width * header.height > MAX_PIXELS
    ):
        return []
    channels = _CHANNELS[header.colour_type]
    chunks = dict[bytes, bytes]()
    for kind, data in _chunks(content):
        chunks[kind] = chunks.get(kind, b"") + data
    stride = header.width * channels
    try:
        raw = zlib.decompressobj().decompress(chunks.get(b"IDAT", b""), (stride + 1) * header.height)
    except zlib.error:
        return []
    if len(raw) < (stride + 1) * header.height:
        return []
    palette = _palette(chunks.get(b"PLTE", b"")) if header.colour_type == _INDEXED else []
    columns = [(2 * x + 1) * header.width // (2 * width) * channels for x in range(width)]
    wanted = [(2 * y + 1) * header.height // (2 * height) for y in range(height)]
    rows: list[list[Pixel]] = []
    line = bytes(stride)
    for number in range(header.height):
        start = number * (stride + 1)
        line = _unfilter(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), line, channels)
        while len(rows) < height and wanted[len(rows)] == number:
            rows.append(
                [_pixel(line[at : at + channels], palette, chunks.get(b"tRNS", b"")) for at in columns]
            )
    return rows


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place + 8 <= len(content):
        size = int.from_bytes(content[place : place + 4])
        yield content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        place += size + 12


def _palette(colours: bytes) -> list[Pixel]:
    return [(colours[at], colours[at + 1], colours[at + 2]) for at in range(0, len(colours) - 2, 3)]


def _pixel(value: bytes, palette: list[Pixel], transparent: bytes) -> Pixel:
    if len(value) == 1 and palette:
        is_seen = value[0] >= len(transparent) or transparent[value[0]] >= _OPAQUE
        return palette[value[0]] if is_seen and value[0] < len(palette) else None
    if len(value) % 2 == 0 and value[-1] < _OPAQUE:
        return None
    return (value[0], value[0], value[0]) if len(value) < 3 else (value[0], value[1], value[2])


def _unfilter(kind: int, line: bytearray, above: bytes, step: int) -> bytes:
    """Undo the filter of one row (section 9 of the PNG specification)."""
    match kind:
        case 1:
            for at in range(step, len(line)):
                line[at] = (line[at] + line[at - step]) & 255
        case 2:
            return bytes((one + up) & 255 for one, up in zip(line, above, strict=True))
        case 3:
            for at, up in enumerate(above):
                left = line[at - step] if at >= step else 0
                line[at] = (line[at] + (left + up) // 2) & 255
        case 4:
            for at, up in enumerate(above):
                left, corner = (line[at - step], above[at - step]) if at >= step else (0, 0)
                to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                nearest = (
                    left
                    if to_left <= to_up and to_left <= to_corner
                    else up
                    if to_up <= to_corner
                    else corner
                )
                line[at] = (line[at] + nearest) & 255
        case _:
            pass
    return bytes(line)
