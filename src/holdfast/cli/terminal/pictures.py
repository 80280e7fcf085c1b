"""Pictures in the terminal, by the protocols of kitty and iTerm2, which take the file as it is, and by sixel, which takes pixels.

kitty and iTerm2 are known by their environment variables. Whether another terminal has sixel, it says itself when it is asked; tmux
answers for the terminal around it. Elsewhere a picture is shown by its path alone.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Literal, assert_never

from holdfast.cli.terminal.png import read_header, read_pixels
from holdfast.cli.terminal.sixel import encode_sixel

Protocol = Literal["kitty", "iterm2", "sixel"]

MAX_BYTES = 4 << 20
_MAX_ROWS = 16
USUAL_CELL = (10, 20)
"""Pixels of a cell in an average terminal. For kitty and iTerm2 only the proportion matters."""
_CHUNK = 4096
_KITTY_PROGRAMS = ("ghostty", "kitty")
_ITERM2_PROGRAMS = ("iTerm.app", "WezTerm", "mintty", "rio")


def picture_protocol(environ: Mapping[str, str]) -> Protocol | None:
    """The protocol that the environment names; None if it names none."""
    if environ.get("TMUX") or environ.get("STY"):
        return None
    program = environ.get("TERM_PROGRAM", "")
    if environ.get("KITTY_WINDOW_ID") or "kitty" in environ.get("TERM", "") or program in _KITTY_PROGRAMS:
        return "kitty"
    if program in _ITERM2_PROGRAMS or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return None


def draw_picture(
    content: bytes, protocol: Protocol | None, *, columns: int, cell: tuple[int, int] = USUAL_CELL
) -> str:
    """The characters that draw a picture; empty if the terminal cannot draw it. `cell` is the size of a character in pixels."""
    header = read_header(content)
    if protocol is None or header is None or len(content) > MAX_BYTES:
        return ""
    width, height = _cells(header.width, header.height, columns=columns)
    text = b64encode(content).decode()
    match protocol:
        case "kitty":
            chunks = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
            first = f"a=T,f=100,q=2,c={width},r={height},"
            return "".join(
                f"\x1b_G{'' if place else first}m={int(place + 1 < len(chunks))};{chunk}\x1b\\"
                for place, chunk in enumerate(chunks)
            )
        case "iterm2":
            fit = f"inline=1;size={len(content)};width={width};height={height};preserveAspectRatio=1"
            return f"\x1b]1337;File={fit}:{text}\a"
        case "sixel":
            scale = min(1.0, columns * cell[0] / header.width, _MAX_ROWS * cell[1] / header.height)
            size = max(1, round(header.width * scale)), max(1, round(header.height * scale))
            pixels = read_pixels(content, *size)
            return encode_sixel(pixels) if pixels else ""
        case _:
            assert_never(protocol)


def _cells(width: int, height: int, *, columns: int) -> tuple[int, int]:
    """Columns and rows that keep the proportion of a picture and fit the screen."""
    wide, high = width / USUAL_CELL[0], height / USUAL_CELL[1]
    scale = min(1.0, columns / wide, _MAX_ROWS / high)
    return max(1, min(columns, round(wide * scale))), max(1, min(_MAX_ROWS, round(high * scale)))
