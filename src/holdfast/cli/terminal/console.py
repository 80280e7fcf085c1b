"""The console: data to stdout, messages to stderr. Output is readable without colour; colour appears on a terminal only."""

import os
import sys
from collections.abc import Sequence
from typing import Literal, Protocol, TextIO

from holdfast.cli.terminal.progress import is_linear, progress_hidden
from holdfast.cli.terminal.wrap import HIGHLIGHT_MARK, fold

Tone = Literal["plain", "good", "bad", "ask", "dim", "strong"]
_CODES: dict[Tone, str] = {"plain": "", "good": "32", "bad": "31", "ask": "33", "dim": "2", "strong": "1"}


class MessageOutput(Protocol):
    """Accepts messages for the user: the console, or the screen of a chat."""

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """Print one or more lines. `folds` wraps long lines and aligns the continuation with the text above."""
        ...


class Console:
    """Writes to stdout and stderr, and decides about colour and wrapping."""

    def __init__(
        self, out: TextIO | None = None, err: TextIO | None = None, *, is_plain: bool = False
    ) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._is_plain = is_plain

    @property
    def is_interactive(self) -> bool:
        """Whether stdin and stderr are terminals, so that a question can be asked and answered."""
        return sys.stdin.isatty() and self._err.isatty()

    def print(self, text: str = "") -> None:
        """Write a line of data to stdout, unchanged."""
        with progress_hidden():
            print(text, file=self._out, flush=True)

    def write(self, text: str) -> None:
        """Write data to stdout without a line end."""
        with progress_hidden():
            self._out.write(text)
            self._out.flush()

    def json(self, value: object) -> None:
        """Write one JSON document to stdout."""
        import msgspec  # here, because help does not need it

        from holdfast.core import escape_json

        self.print(escape_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))

    def stream_json(self, value: object) -> None:
        """Like `json`, piece by piece: a text in the value may be so long that its JSON does not fit into memory."""
        import msgspec

        from holdfast.core import escape_json, json_pieces

        with progress_hidden():
            for piece in json_pieces(msgspec.to_builtins(value, str_keys=True)):
                self._out.write(escape_json(piece))
            self._out.write("\n")
            self._out.flush()

    def say(self, text: str = "", tone: Tone = "plain", *, end: str = "\n", folds: bool = False) -> None:
        """Write a message to stderr. Control characters in it are escaped, so that the terminal does not obey them."""
        text = _escape(text)
        text = self._fold(text, self._err) if folds else text
        shown = text if self._is_plain else paint(text, tone, self._err)
        with progress_hidden():
            print(shown, end=end, file=self._err, flush=True)

    def show(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """Write text for a person to stdout, escaped as `say` does."""
        text = _escape(text)
        text = self._fold(text, self._out) if folds else text
        with progress_hidden():
            print(paint(text, tone, self._out), file=self._out, flush=True)

    def show_line(self, pieces: Sequence[tuple[str, bool]], tone: Tone = "plain") -> None:
        """Like `show`, for a line in pieces; the marked ones are emphasised."""
        with progress_hidden():
            print(paint_line(pieces, tone, self._out), file=self._out, flush=True)

    def show_highlighted(self, *pieces: str) -> None:
        """Like `show`, wrapped, with every second piece highlighted."""
        shown = (
            f"{HIGHLIGHT_MARK}{_escape(piece)}{HIGHLIGHT_MARK}" if number % 2 else _escape(piece)
            for number, piece in enumerate(pieces)
        )
        folded = self._fold("".join(shown), self._out).split(HIGHLIGHT_MARK)
        with progress_hidden():
            painted = (
                paint(piece, "strong" if number % 2 else "plain", self._out)
                for number, piece in enumerate(folded)
            )
            print("".join(painted), file=self._out, flush=True)

    def notify(self, text: str) -> None:
        """Ring the bell, and send a desktop notification where the terminal supports it."""
        with progress_hidden():
            print(f"\a\x1b]9;{_escape(text)}\x07", end="", file=self._err, flush=True)

    @property
    def screen_size(self) -> os.terminal_size | None:
        """The size of the terminal that shows messages; None without one, or in plain mode."""
        return self._size_of(self._err)

    def _fold(self, text: str, stream: TextIO) -> str:
        size = self._size_of(stream)
        return text if size is None else fold(text, size.columns)

    def _size_of(self, stream: TextIO) -> os.terminal_size | None:
        if self._is_plain or not stream.isatty() or is_linear():
            return None
        import shutil

        return shutil.get_terminal_size()


def wants_plain(requested: bool | None = None) -> bool:
    """Whether to write linear text without redraws and colour: as requested, else as TERM says."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    return is_linear() if requested is None else requested


def paint(text: str, tone: Tone, stream: TextIO) -> str:
    """The text in the colour of its tone, where the stream is a terminal that supports colour."""
    code = _CODES[tone]
    if not code or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def paint_line(pieces: Sequence[tuple[str, bool]], tone: Tone, stream: TextIO) -> str:
    """A line in pieces, escaped, in the colour of its tone; the marked pieces are reversed where there is colour."""
    plain = "".join(_escape(text) for text, _ in pieces)
    if paint(plain, tone, stream) == plain:
        return plain
    marked = "".join(
        f"\x1b[7m{_escape(text)}\x1b[27m" if is_marked else _escape(text) for text, is_marked in pieces
    )
    return f"\x1b[{_CODES[tone]}m{marked}\x1b[0m"


def _escape(text: str) -> str:
    from holdfast.core import escape_invisible  # here, because help does not need it

    return escape_invisible(text)
