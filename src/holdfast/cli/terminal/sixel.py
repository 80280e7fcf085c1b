"""Sixel: pixels as text for terminals of the VT340 line, six rows of one colour at a time."""

import re
from collections.abc import Sequence

from holdfast.cli.terminal.png import Pixel

_BAND = 6
_MAX_COLOURS = 256
_LEVELS = 5
"""Steps of red, green and blue where a picture has more colours than a terminal: 6 x 6 x 6 of them are left."""
_REPEATED = re.compile(r"(.)\1{3,}")


def encode_sixel(rows: Sequence[Sequence[Pixel]]) -> str:
    """The characters that draw these rows at the cursor. Transparent pixels leave what is there."""
    if len({pixel for row in rows for pixel in row}) > _MAX_COLOURS:
        rows = [[_coarse(pixel) for pixel in row] for row in rows]
    colours = {
        pixel: number for number, pixel in enumerate({pixel for row in rows for pixel in row if pixel})
    }
    width = len(rows[0]) if rows else 0
    bands = [_band(rows[at : at + _BAND], colours, width) for at in range(0, len(rows), _BAND)]
    defined = "".join(
        f"#{number};2;{';'.join(str((100 * part + 127) // 255) for part in colour)}"
        for colour, number in colours.items()
    )
    return f'\x1bP0;1q"1;1;{width};{len(rows)}{defined}{"-".join(bands)}\x1b\\'


def _band(rows: Sequence[Sequence[Pixel]], colours: dict[tuple[int, int, int], int], width: int) -> str:
    """Six rows: for each colour in them, which of the six pixels of each column it has."""
    masks: dict[int, bytearray] = {}
    for bit, row in enumerate(rows):
        for x, pixel in enumerate(row):
            if pixel is not None:
                masks.setdefault(colours[pixel], bytearray(b"?" * width))[x] += 1 << bit
    return "$".join(
        f"#{number}{_REPEATED.sub(lambda run: f'!{len(run[0])}{run[1]}', mask.decode().rstrip('?'))}"
        for number, mask in masks.items()
    )


def _coarse(pixel: Pixel) -> Pixel:
    if pixel is None:
        return None
    red, green, blue = ((part * _LEVELS + 127) // 255 * 255 // _LEVELS for part in pixel)
    return red, green, blue
