"""Pictures in the conversation: drawn where the terminal can, else named by their path."""

import base64
import re
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.terminals import prepared, terminal

from holdfast.cli.terminal.pictures import MAX_BYTES, draw_picture, picture_protocol
from holdfast.cli.terminal.png import Pixel, read_pixels
from holdfast.cli.terminal.sixel import encode_sixel

RED, BLUE = (255, 0, 0), (0, 0, 255)


def png(width: int, height: int) -> bytes:
    return png_of(width, height, [b"\0" + bytes(3 * width)] * height)


def png_of(
    width: int,
    height: int,
    rows: list[bytes],
    *,
    colour_type: int = 2,
    palette: bytes = b"",
    clear: bytes = b"",
) -> bytes:
    """A file of rows that begin with their filter."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + (chunk(b"PLTE", palette) if palette else b"")
        + (chunk(b"tRNS", clear) if clear else b"")
        + chunk(b"IDAT", zlib.compress(b"".join(rows)))
        + chunk(b"IEND", b"")
    )


def filtered(kind: int, rows: list[bytes], step: int) -> list[bytes]:
    """Rows as an encoder writes them with this filter: what the specification subtracts, byte by byte."""
    above, made = bytes(len(rows[0])), []
    for row in rows:
        line = bytearray([kind])
        for at, value in enumerate(row):
            left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
            up = above[at]
            estimate = left + up - corner
            paeth = min((left, up, corner), key=lambda each: abs(estimate - each))
            line.append((value - (0, left, up, (left + up) // 2, paeth)[kind]) & 255)
        made.append(bytes(line))
        above = row
    return made


def drawn_pixels(text: str) -> dict[tuple[int, int], tuple[int, ...]]:
    """What a terminal draws of a sixel picture: the colour of each pixel, in percent."""
    body = text.removeprefix("\x1bP0;1q").removesuffix("\x1b\\")
    colours: dict[str, tuple[int, ...]] = {}
    pixels: dict[tuple[int, int], tuple[int, ...]] = {}
    x = y = 0
    current: tuple[int, ...] = ()
    for token in re.findall(r'"[\d;]*|#\d+(?:;[\d;]+)?|!\d+.|[$-]|[?-~]', body):
        if token.startswith("#"):
            number, *parts = token[1:].split(";")
            if parts:
                colours[number] = tuple(map(int, parts[1:]))
            current = colours[number]
        elif token == "$":
            x = 0
        elif token == "-":
            x, y = 0, y + 6
        elif not token.startswith('"'):
            count = int(token[1:-1]) if token[0] == "!" else 1
            bits = [bit for bit in range(6) if (ord(token[-1]) - 63) >> bit & 1]
            pixels |= {(x + step, y + bit): current for step in range(count) for bit in bits}
            x += count
    return pixels


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux-0/default,1,0"}, None),
        ({"TERM": "xterm-256color"}, None),
        ({}, None),
    ],
)
def test_the_protocol_is_read_from_the_environment(environ: dict[str, str], protocol: str | None) -> None:
    assert picture_protocol(environ) == protocol


def test_kitty_gets_the_whole_file_in_chunks() -> None:
    content = png(200, 100) + bytes(range(256)) * 40
    drawn = draw_picture(content, "kitty", columns=76)
    chunks = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", drawn)
    assert "".join(f"\x1b_G{keys};{text}\x1b\\" for keys, text in chunks) == drawn
    assert base64.b64decode("".join(text for _, text in chunks)) == content
    assert chunks[0][0] == "a=T,f=100,q=2,c=20,r=5,m=1"
    assert [keys for keys, _ in chunks[1:]] == [*["m=1"] * (len(chunks) - 2), "m=0"]


def test_iterm2_gets_the_whole_file_at_once() -> None:
    content = png(200, 100)
    drawn = draw_picture(content, "iterm2", columns=76)
    head, _, text = drawn.removesuffix("\a").partition(":")
    assert head.startswith("\x1b]1337;File=inline=1;")
    assert base64.b64decode(text) == content


@pytest.mark.parametrize(("width", "height"), [(1, 1), (4000, 10), (10, 4000), (3000, 3000), (1 << 31, 1)])
def test_a_picture_fits_the_screen(width: int, height: int) -> None:
    content = png(1, 1)[:16] + struct.pack(">II", width, height) + png(1, 1)[24:]
    found = re.search(r"c=(\d+),r=(\d+)", draw_picture(content, "kitty", columns=40))
    assert found is not None
    assert 1 <= int(found[1]) <= 40
    assert 1 <= int(found[2]) <= 16


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8\xff", png(1, 1)[:20], png(1, 1)[:16] + bytes(8), png(1, 1) + bytes(MAX_BYTES)]
)
def test_what_cannot_be_drawn_is_not_drawn(content: bytes) -> None:
    assert draw_picture(content, "kitty", columns=40) == ""
    assert draw_picture(png(1, 1), None, columns=40) == ""


def test_an_attached_picture_is_drawn_in_the_chat(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Seen.")
    (tmp_path / "work" / "plot.png").write_bytes(png(20, 20))
    with terminal(*words, home=tmp_path, KITTY_WINDOW_ID="1") as user:
        assert user.wait_for("/help")
        user.type("look at @plot.png\r")
        assert user.wait_for("attached plot.png (image/png")
        assert user.wait_for("\x1b_Ga=T,f=100,q=2,c=2,r=1,m=0;iVBORw0KGgo")
        assert user.wait_for("Seen.")
        assert user.end("\x04") == 0


@pytest.mark.parametrize(("colour_type", "step"), [(0, 1), (2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("kind", range(5))
def test_every_filter_and_form_of_a_png_is_read(kind: int, colour_type: int, step: int) -> None:
    rows = [bytes((x * 7 + y * 31 + 128) % 256 for x in range(5 * step)) for y in range(4)]
    opaque = [
        bytes(255 if step % 2 == 0 and at % step == step - 1 else value for at, value in enumerate(row))
        for row in rows
    ]
    found = read_pixels(png_of(5, 4, filtered(kind, opaque, step), colour_type=colour_type), 5, 4)
    shown = [
        [(p[0], p[0], p[0]) if step < 3 else (p[0], p[1], p[2]) for p in chunked(row, step)] for row in opaque
    ]
    assert found == shown


def chunked(row: bytes, step: int) -> list[bytes]:
    return [row[at : at + step] for at in range(0, len(row), step)]


def test_a_palette_with_transparent_places_is_read() -> None:
    content = png_of(
        3, 1, [b"\0\0\1\2"], colour_type=3, palette=bytes((*RED, *BLUE, 9, 9, 9)), clear=b"\xff\x00"
    )
    assert read_pixels(content, 3, 1) == [[RED, None, (9, 9, 9)]]


@given(
    st.integers(1, 12).flatmap(
        lambda width: st.lists(
            st.lists(st.sampled_from([RED, BLUE, (255, 255, 255), None]), min_size=width, max_size=width),
            min_size=1,
            max_size=14,
        )
    )
)
def test_sixel_draws_every_pixel_once_in_its_colour(rows: list[list[Pixel]]) -> None:
    wanted = {
        (x, y): tuple(100 * part // 255 for part in pixel)
        for y, row in enumerate(rows)
        for x, pixel in enumerate(row)
        if pixel is not None
    }
    assert drawn_pixels(encode_sixel(rows)) == wanted


def test_a_sixel_picture_has_at_most_256_colours_and_fits_the_screen() -> None:
    rows = [b"\0" + bytes(value for x in range(600) for value in (x % 256, y % 256, 77)) for y in range(500)]
    drawn = draw_picture(png_of(600, 500, rows), "sixel", columns=40, cell=(8, 16))
    size = re.search(r'"1;1;(\d+);(\d+)', drawn)
    assert size is not None
    assert (int(size[1]), int(size[2])) == (307, 256)
    assert len(set(re.findall(r"#(\d+)", drawn))) <= 256


@given(st.binary(max_size=60), st.integers(0, 60))
def test_a_damaged_picture_draws_nothing_and_raises_nothing(damage: bytes, place: int) -> None:
    content = png(4, 3)
    draw_picture(content[:place] + damage + content[place + len(damage) :], "sixel", columns=20)


def test_a_terminal_that_says_it_has_sixel_gets_the_picture_as_sixel(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Seen.", "Again.")
    (tmp_path / "work" / "plot.png").write_bytes(png(20, 20))
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("look at @plot.png\r")
        assert user.wait_for("\x1b[c")
        user.type("\x1b[?62;4;22c")
        assert user.wait_for('\x1bP0;1q"1;1;20;20#0;2;0;0;0#0!20~')
        assert user.wait_for("Seen.")
        user.type("and @plot.png\r")
        assert user.wait_for("\x1bP0;1q"), "it is asked once"
        assert user.wait_for("Again.")
        assert user.end("\x04") == 0
    assert user.seen.count("\x1b[c") == 1
