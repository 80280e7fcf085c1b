"""Surrogate halves in streamed text: a provider's JSON may split a character between two pieces, or send half of one."""

import re
from collections.abc import Callable

_SURROGATE = re.compile("[\ud800-\udfff]")


def repair_surrogates(text: str) -> str:
    """Join the halves that belong together. A lone half becomes U+FFFD, because it is not a character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Passes pieces of text on, each made of complete characters."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._high_half = ""

    def add(self, piece: str) -> None:
        """Add a piece. If it ends in the first half of a character, that half waits for the next piece."""
        text = self._high_half + piece
        self._high_half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if text := text.removesuffix(self._high_half):
            self._on_text(repair_surrogates(text))
