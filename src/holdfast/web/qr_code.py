"""QR codes (ISO/IEC 18004) for links: bytes, error correction level M, versions 1 to 10, as the path of an SVG picture.

Only what a link to this server needs, so that no library is needed for it.
"""

from collections.abc import Callable, Iterator, Sequence

from holdfast.core import Value
from holdfast.core.errors import InvalidInput

_BLOCKS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (10, (16,)),
    (16, (28,)),
    (26, (44,)),
    (18, (32, 32)),
    (24, (43, 43)),
    (16, (27,) * 4),
    (18, (31,) * 4),
    (22, (38, 38, 39, 39)),
    (22, (36, 36, 36, 37, 37)),
    (26, (43, 43, 43, 43, 44)),
)
"""For each version: the error correction bytes of a block, and the data bytes of each block."""
_ALIGNMENT: tuple[tuple[int, ...], ...] = (
    (),
    (6, 18),
    (6, 22),
    (6, 26),
    (6, 30),
    (6, 34),
    (6, 22, 38),
    (6, 24, 42),
    (6, 26, 46),
    (6, 28, 50),
)
_FINDER_LIKE = ("10111010000", "00001011101")
Matrix = list[list[bool]]


class QrCode(Value, omit_defaults=False):
    """A QR code: how many modules a side has, quiet zone included, and the dark ones as an SVG path."""

    size: int
    path: str


def qr_code(text: str) -> QrCode:
    """The QR code of a text. Raises InvalidInput if it has more than 213 bytes."""
    modules = qr_matrix(text)
    quiet = 4
    runs = "".join(
        f"M{start + quiet} {y + quiet}h{length}v1h-{length}z"
        for y, row in enumerate(modules)
        for start, length in _runs(row)
    )
    return QrCode(size=len(modules) + 2 * quiet, path=runs)


def qr_matrix(text: str) -> Matrix:
    """The modules of the QR code of a text, dark ones True, with the mask that is easiest to read."""
    data = text.encode()
    version = next(
        (v for v, (_, blocks) in enumerate(_BLOCKS, 1) if len(data) + (2 if v < 10 else 3) <= sum(blocks)), 0
    )
    if not version:
        raise InvalidInput("the text is too long for a QR code")
    bits = _bits(_codewords(data, version))
    candidates = (_drawn(version, bits, mask) for mask in range(8))
    return min(candidates, key=_penalty)


def _codewords(data: bytes, version: int) -> bytes:
    """The data with its length and padding, and the error correction, blocks interleaved."""
    correction, sizes = _BLOCKS[version - 1]
    length = f"{len(data):0{8 if version < 10 else 16}b}"
    stream = "0100" + length + "".join(f"{byte:08b}" for byte in data) + "0000"
    stream = stream[: 8 * sum(sizes)].ljust((len(stream) + 7) // 8 * 8, "0")
    filled = bytearray(int(stream[place : place + 8], 2) for place in range(0, len(stream), 8))[: sum(sizes)]
    filled += bytes((0xEC, 0x11) * sum(sizes))[: sum(sizes) - len(filled)]
    blocks: list[bytes] = []
    for size in sizes:
        start = sum(map(len, blocks))
        blocks.append(bytes(filled[start : start + size]))
    corrections = [_remainder(block, correction) for block in blocks]
    longest = max(sizes)
    woven = [block[place] for place in range(longest) for block in blocks if place < len(block)]
    woven += [each[place] for place in range(correction) for each in corrections]
    return bytes(woven)


def _multiply(a: int, b: int) -> int:
    """Multiply in the field GF(256) with the polynomial 0x11D."""
    product = 0
    for place in range(7, -1, -1):
        product = (product << 1) ^ ((product >> 7) * 0x11D)
        product ^= ((b >> place) & 1) * a
    return product


def _remainder(data: Sequence[int], count: int) -> bytes:
    """The Reed-Solomon error correction of a block."""
    divisor = [0] * (count - 1) + [1]
    root = 1
    for _ in range(count):
        for place in range(count):
            divisor[place] = _multiply(divisor[place], root)
            if place + 1 < count:
                divisor[place] ^= divisor[place + 1]
        root = _multiply(root, 2)
    result = [0] * count
    for byte in data:
        factor = byte ^ result.pop(0)
        result.append(0)
        result = [each ^ _multiply(part, factor) for each, part in zip(result, divisor, strict=True)]
    return bytes(result)


def _bits(codewords: bytes) -> list[bool]:
    return [bool(byte >> place & 1) for byte in codewords for place in range(7, -1, -1)]


def _drawn(version: int, bits: Sequence[bool], mask: int) -> Matrix:
    size = 17 + 4 * version
    dark: Matrix = [[False] * size for _ in range(size)]
    fixed: Matrix = [[False] * size for _ in range(size)]

    def put(x: int, y: int, value: bool) -> None:
        if 0 <= x < size and 0 <= y < size:
            dark[y][x], fixed[y][x] = value, True

    for place in range(size):
        put(6, place, place % 2 == 0)
        put(place, 6, place % 2 == 0)
    for center_x, center_y in ((3, 3), (size - 4, 3), (3, size - 4)):
        for dy in range(-4, 5):
            for dx in range(-4, 5):
                put(center_x + dx, center_y + dy, max(abs(dx), abs(dy)) not in (2, 4))
    places = _ALIGNMENT[version - 1]
    for center_y in places:
        for center_x in places:
            if (center_x, center_y) in ((6, 6), (6, places[-1]), (places[-1], 6)):
                continue
            for dy in range(-2, 3):
                for dx in range(-2, 3):
                    put(center_x + dx, center_y + dy, max(abs(dx), abs(dy)) != 1)
    _put_format(put, size, mask)
    if version >= 7:
        code = version << 12 | _bch(version, 12, 0x1F25)
        for place in range(18):
            across, down = place // 3, size - 11 + place % 3
            put(down, across, bool(code >> place & 1))
            put(across, down, bool(code >> place & 1))
    stream = iter(bits)
    for x, y in _data_places(size):
        if not fixed[y][x]:
            dark[y][x] = next(stream, False) ^ _is_inverted(mask, x, y)
    return dark


def _put_format(put: Callable[[int, int, bool], None], size: int, mask: int) -> None:
    code = (mask << 10 | _bch(mask, 10, 0x537)) ^ 0x5412  # level M is 00
    for place in range(15):
        bit = bool(code >> place & 1)
        put(8, place if place < 6 else place + 1 if place < 8 else size - 15 + place, bit)
        put(size - 1 - place if place < 8 else 15 - place if place < 9 else 14 - place, 8, bit)
    put(8, size - 8, True)


def _bch(value: int, length: int, divisor: int) -> int:
    """The check bits of a value."""
    rest = value
    for _ in range(length):
        rest = (rest << 1) ^ ((rest >> (length - 1)) * divisor)
    return rest


def _data_places(size: int) -> Iterator[tuple[int, int]]:
    """Two columns at a time from the right, up and down in turns; column 6 is the timing pattern."""
    rights = [right if right > 6 else right - 1 for right in range(size - 1, 0, -2)]
    for turn, right in enumerate(rights):
        for step in range(size):
            y = size - 1 - step if turn % 2 == 0 else step
            yield right, y
            yield right - 1, y


def _is_inverted(mask: int, x: int, y: int) -> bool:
    values = (
        (x + y) % 2,
        y % 2,
        x % 3,
        (x + y) % 3,
        (x // 3 + y // 2) % 2,
        x * y % 2 + x * y % 3,
        (x * y % 2 + x * y % 3) % 2,
        ((x + y) % 2 + x * y % 3) % 2,
    )
    return values[mask] == 0


def _penalty(modules: Matrix) -> int:
    """How hard a code is to read: long runs, blocks, patterns like the finders, and too much of one colour."""
    size = len(modules)
    total = 0
    for row in (*modules, *(list(column) for column in zip(*modules, strict=True))):
        line = "".join("1" if each else "0" for each in row)
        total += sum(length - 2 for value in "01" for length in map(len, _split(line, value)) if length >= 5)
        total += sum(
            40 for place in range(size - 10) for like in _FINDER_LIKE if line.startswith(like, place)
        )
    for y in range(size - 1):
        for x in range(size - 1):
            square = {modules[y][x], modules[y][x + 1], modules[y + 1][x], modules[y + 1][x + 1]}
            total += 3 if len(square) == 1 else 0
    dark = sum(map(sum, modules))
    return total + 10 * (abs(dark * 20 - size * size * 10) // (size * size))


def _split(line: str, value: str) -> list[str]:
    """The runs of a value in a line."""
    return [run for run in line.split("1" if value == "0" else "0") if run]


def _runs(row: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The start and length of each run of dark modules."""
    start = -1
    for place, is_dark in enumerate([*row, False]):
        if is_dark and start < 0:
            start = place
        elif not is_dark and start >= 0:
            yield start, place - start
            start = -1
