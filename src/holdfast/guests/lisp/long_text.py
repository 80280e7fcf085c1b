"""Long texts in UTF-8: strings that would take several times their bytes as Python text, because of a single wide character.

A Python string takes four bytes for each of its characters as soon as it has one emoji. The interpreter runs in the process of the
host, so a string is kept as UTF-8 where that saves much memory. Programs see no difference: a procedure that cannot work on the bytes
says so.
"""

from bisect import bisect_right
from typing import Final, final

from holdfast.core import text_memory

SAVED_BYTES: Final = 16 << 20
"""A string is kept as UTF-8 if that saves more than this."""
_PIECE = 1 << 16
_CONTINUATION = bytes(range(0x80, 0xC0))
"""The bytes of a character after its first."""


@final
class LongText:
    """A string in UTF-8. `starts` has the number of characters that begin before each piece of its bytes, and of all at the end."""

    __slots__ = ("content", "starts")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.starts = [0]
        for at in range(0, len(content), _PIECE):
            self.starts.append(self.starts[-1] + _count(content[at : at + _PIECE]))

    def __len__(self) -> int:
        return self.starts[-1]

    def __eq__(self, other: object) -> bool:
        return type(other) is LongText and other.content == self.content

    def __hash__(self) -> int:
        return hash(self.content)

    def offset(self, index: int) -> int:
        """Where in the bytes the character of this index starts."""
        if index >= len(self):
            return len(self.content)
        number = bisect_right(self.starts, index) - 1
        start = number * _PIECE
        piece = self.content[start : start + _PIECE + 3]  # its last character may end behind it
        text = piece.lstrip(_CONTINUATION)
        before = text.decode(errors="ignore")[: index - self.starts[number]]
        return start + len(piece) - len(text) + len(before.encode())

    def index(self, offset: int) -> int:
        """The index of the character that starts at this place in the bytes."""
        number = offset // _PIECE
        return self.starts[number] + _count(self.content[number * _PIECE : offset])


def as_text(content: bytes) -> "str | LongText":
    """The string with these bytes of UTF-8."""
    can_save = 3 * len(content) > SAVED_BYTES and not content.isascii()
    if can_save and text_memory(content) - len(content) > SAVED_BYTES:
        return LongText(content)
    return content.decode()


def as_utf8(text: "str | LongText") -> bytes:
    """The bytes of a string in UTF-8."""
    return text.content if isinstance(text, LongText) else text.encode("utf-8", "replace")


def _count(content: bytes) -> int:
    return len(content.translate(None, _CONTINUATION))
