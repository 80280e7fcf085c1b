"""Pictures in the conversation: drawn where the terminal can, else named by their path."""

import base64
import re
import struct
import zlib
from pathlib import Path

import pytest
from tests.cli.terminals import prepared, terminal

from holdfast.cli.terminal.pictures import MAX_BYTES, draw_picture, picture_protocol


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(3 * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


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
