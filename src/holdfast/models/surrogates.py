"""Characters that came in halves: the JSON of a provider may name one half alone, or cut a character in two between pieces."""

import re
from collections.abc import Callable

_HALF = re.compile("[\ud800-\udfff]")


def repair_surrogates(text: str) -> str:
    """The text with halves that belong together joined; one that is left alone is no character and marked as such."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Hands pieces of a text on, each of whole characters."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._half = ""

    def add(self, piece: str) -> None:
        """The next piece; its last character may come with the one after it."""
        text = self._half + piece
        self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if text := text.removesuffix(self._half):
            self._on_text(repair_surrogates(text))
