"""Where words go: data to stdout, everything else to stderr. Readable without colour; colour only on a terminal."""

import os
import sys
from typing import Literal, Protocol, TextIO

from holdfast.cli.terminal.progress import is_linear, progress_hidden
from holdfast.cli.terminal.wrap import MARK, fold

Tone = Literal["plain", "good", "bad", "ask", "dim", "strong"]
_CODES: dict[Tone, str] = {"plain": "", "good": "32", "bad": "31", "ask": "33", "dim": "2", "strong": "1"}


class Output(Protocol):
    """Whoever takes news for the person."""

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """One line, or several; `folds` lets words that are too long for the terminal go on below, in line."""
        ...


class Console:
    """Two streams and one decision: colour or none."""

    def __init__(
        self, out: TextIO | None = None, err: TextIO | None = None, *, is_plain: bool = False
    ) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._is_plain = is_plain

    @property
    def is_interactive(self) -> bool:
        """Whether a person sits at both ends."""
        return sys.stdin.isatty() and self._err.isatty()

    def print(self, text: str = "") -> None:
        """Data, for whoever reads stdout."""
        with progress_hidden():
            print(text, file=self._out, flush=True)

    def write(self, text: str) -> None:
        """A piece of data without a line end."""
        with progress_hidden():
            self._out.write(text)
            self._out.flush()

    def json(self, value: object) -> None:
        """One JSON document on stdout."""
        import msgspec  # here: help needs none of it

        self.print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())

    def say(self, text: str = "", tone: Tone = "plain", *, end: str = "\n", folds: bool = False) -> None:
        """News, for the person at stderr. Whoever chose the words, they write nothing else to a terminal."""
        text = visible(text)
        text = self._folded(text, self._err) if folds else text
        shown = text if self._is_plain else paint(text, tone, self._err)
        with progress_hidden():
            print(shown, end=end, file=self._err, flush=True)

    def tell(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """What a command shows a person on stdout, with nothing in it that a terminal would obey."""
        text = visible(text)
        text = self._folded(text, self._out) if folds else text
        with progress_hidden():
            print(paint(text, tone, self._out), file=self._out, flush=True)

    def tell_marked(self, *pieces: str) -> None:
        """As `tell`, folded, with every second piece strong."""
        shown = (
            f"{MARK}{visible(piece)}{MARK}" if number % 2 else visible(piece)
            for number, piece in enumerate(pieces)
        )
        folded = self._folded("".join(shown), self._out).split(MARK)
        with progress_hidden():
            painted = (
                paint(piece, "strong" if number % 2 else "plain", self._out)
                for number, piece in enumerate(folded)
            )
            print("".join(painted), file=self._out, flush=True)

    def ring(self, why: str) -> None:
        """Call the person: a bell, and a notification where the terminal knows them."""
        with progress_hidden():
            print(f"\a\x1b]9;{visible(why)}\x07", end="", file=self._err, flush=True)

    @property
    def screen(self) -> os.terminal_size | None:
        """The size of the screen that news go to; None where they go on without end."""
        return self._screen(self._err)

    def _folded(self, text: str, stream: TextIO) -> str:
        screen = self._screen(stream)
        return text if screen is None else fold(text, screen.columns)

    def _screen(self, stream: TextIO) -> os.terminal_size | None:
        if self._is_plain or not stream.isatty() or is_linear():
            return None
        import shutil

        return shutil.get_terminal_size()


def wants_plain(said: bool | None = None) -> bool:
    """Whether to write linear text, without redraws and colour: `said` by the person, else by the terminal and NO_COLOR."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    return is_linear() if said is None else said


def paint(text: str, tone: Tone, stream: TextIO) -> str:
    """The text with colour where the stream is a terminal that wants it."""
    code = _CODES[tone]
    if not code or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def visible(text: str) -> str:
    """The text with every control, direction and zero-width character made visible; line ends and tabs stay."""
    return "".join(char if char in "\n\t" or _is_plain(char) else f"<U+{ord(char):04X}>" for char in text)


def _is_plain(char: str) -> bool:
    number = ord(char)
    return not (
        number < 0x20
        or 0x7F <= number < 0xA0
        or number in (0x00AD, 0x061C, 0x180E, 0xFEFF)
        or 0x200B <= number <= 0x200F
        or 0x2028 <= number <= 0x202E
        or 0x2060 <= number <= 0x206F
        or 0xE0000 <= number <= 0xE007F
        or 0xFFF9 <= number <= 0xFFFB
        or 0xD800 <= number <= 0xDFFF
    )
