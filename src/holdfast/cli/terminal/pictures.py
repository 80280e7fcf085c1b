"""Pictures in the terminal, by the protocols of kitty and iTerm2. Both take the file as it is, in base64.

Which protocol a terminal has is read from its environment variables. In tmux and screen, and where neither protocol is there, a
picture is shown by its path alone.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Literal

Protocol = Literal["kitty", "iterm2"]

MAX_BYTES = 4 << 20
_MAX_ROWS = 16
_CELL = (10, 20)
"""Pixels of a cell in an average terminal. Only the proportion matters for a picture that is too large."""
_CHUNK = 4096
_PNG = b"\x89PNG\r\n\x1a\n"
_KITTY_PROGRAMS = ("ghostty", "kitty")
_ITERM2_PROGRAMS = ("iTerm.app", "WezTerm", "mintty", "rio")


def picture_protocol(environ: Mapping[str, str]) -> Protocol | None:
    """The protocol by which this terminal draws pictures; None if it is not known to have one."""
    if environ.get("TMUX") or environ.get("STY"):
        return None
    program = environ.get("TERM_PROGRAM", "")
    if environ.get("KITTY_WINDOW_ID") or "kitty" in environ.get("TERM", "") or program in _KITTY_PROGRAMS:
        return "kitty"
    if program in _ITERM2_PROGRAMS or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return None


def draw_picture(content: bytes, protocol: Protocol | None, *, columns: int) -> str:
    """The characters that draw a picture; empty if the terminal cannot draw it."""
    size = _png_size(content)
    if protocol is None or size is None or len(content) > MAX_BYTES:
        return ""
    width, height = _cells(*size, columns=columns)
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


def _png_size(content: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None if it is not a PNG."""
    if not content.startswith(_PNG) or content[12:16] != b"IHDR" or len(content) < 24:
        return None
    width, height = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    return (width, height) if width and height else None


def _cells(width: int, height: int, *, columns: int) -> tuple[int, int]:
    """Columns and rows that keep the proportion of a picture and fit the screen."""
    wide, high = width / _CELL[0], height / _CELL[1]
    scale = min(1.0, columns / wide, _MAX_ROWS / high)
    return max(1, min(columns, round(wide * scale))), max(1, min(_MAX_ROWS, round(high * scale)))
