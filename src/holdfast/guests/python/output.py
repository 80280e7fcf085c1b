"""What a run prints, kept up to a bound."""


class Output:
    """Takes the interpreter's printed text; the print that goes past the bound ends the run."""

    def __init__(self, *, max_bytes: int, before: str = "") -> None:
        self._parts = [before]
        self._left = max_bytes - len(before.encode())
        self.is_full = False

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join(self._parts)

    def __call__(self, _stream: str, text: str) -> None:
        size = len(text.encode())
        if size <= self._left:
            self._parts.append(text)
            self._left -= size
            return
        self._parts.append(text.encode()[: max(0, self._left)].decode(errors="ignore"))
        self._left = 0
        self.is_full = True
        # The interpreter ends a run whose printing fails; guest code cannot catch that.
        raise OverflowError("too much output")
