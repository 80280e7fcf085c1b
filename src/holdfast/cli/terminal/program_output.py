"""Output of a program in the chat: whole lines, marked as its own words."""

from collections.abc import Callable


class ProgramOutput:
    """Receives text as it arrives and shows it line by line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._line = ""

    def __call__(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._say(f"  | {line.rstrip(chr(13))}")

    def end(self) -> None:
        """Show a last line that did not end."""
        if self._line:
            self._say(f"  | {self._line}")
            self._line = ""
