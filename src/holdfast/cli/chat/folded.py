"""Folded texts: reasoning, code and output that the chat shows as one line and prints whole on request (Ctrl-O)."""

from collections import deque
from collections.abc import Callable

from holdfast.cli.terminal.console import Tone
from holdfast.cli.terminal.program_output import as_shown
from holdfast.core import escape_invisible, pluralize
from holdfast.core.events import CommandEnded, RecordedEvent, RunEnded, RunStarted

MAX_TEXTS = 50
MAX_SHOWN_CHARACTERS = 20_000
"""What is printed of one text; `holdfast show` prints the whole."""
_TAIL_CHARACTERS = 4_000

Say = Callable[[str, Tone], None]


class FoldedTexts:
    """The latest folded texts. Each request unfolds the newest that was not shown yet."""

    def __init__(self, say: Say, *, hint: str) -> None:
        self._say, self._hint = say, hint
        self._texts: deque[tuple[str, str]] = deque(maxlen=MAX_TEXTS)

    def fold(self, title: str, text: str) -> None:
        """Print the title, and keep the text."""
        self._texts.append((title, text))
        self._say(f"  {title} ({self._hint} shows it)", "dim")

    def unfold(self) -> None:
        """Print the newest text that is still folded."""
        if not self._texts:
            self._say("  nothing is folded", "dim")
            return
        title, text = self._texts.pop()
        shown = escape_invisible(text.strip("\n")[:MAX_SHOWN_CHARACTERS])
        indented = "\n".join(f"  | {line}" for line in shown.expandtabs(4).split("\n"))
        self._say(f"  {title}:\n{indented}", "dim")


class RunView:
    """Follows a session: shows the code that runs while it runs, and folds it to one line when it ends.

    `take_output` returns what the programs of the run printed; what the code itself printed of it is not repeated.
    """

    def __init__(
        self,
        *,
        live: Callable[[str], None],
        fold: Callable[[str, str], None],
        take_output: Callable[[], str],
        after: int,
    ) -> None:
        self._live, self._fold, self._take_output, self._after = live, fold, take_output, after
        self._code = self._engine = ""

    def __call__(self, entry: RecordedEvent) -> None:
        if entry.seq <= self._after:
            return
        match event := entry.event:
            case RunStarted():
                self._code, self._engine = event.code, event.engine
                self._live(event.code)
            case RunEnded() if self._code:
                self._end(event.status, event.printed)
            case _:
                pass

    def cut_off(self) -> None:
        """Fold a run that was stopped: it does not end by itself."""
        if self._code:
            self._end("stopped", "")

    def _end(self, status: str, printed: str) -> None:
        self._live("")
        by_code = f"\n--- printed ---\n{printed}" if printed.strip() else ""
        output = self._take_output().strip()
        by_programs = f"\n--- programs printed ---\n{output}" if output not in printed else ""
        size = pluralize(len(self._code.strip().splitlines()), "line")
        self._fold(f"ran {size} of code ({self._engine}): {status}", self._code + by_code + by_programs)
        self._code = ""


class CommandOutputView:
    """Shows the end of what the running program prints, and keeps it for the fold of the run."""

    def __init__(self, live: Callable[[str], None]) -> None:
        self._live = live
        self._tail = self._ended = ""

    def __call__(self, text: str) -> None:
        self._tail = as_shown(self._tail + text)[-_TAIL_CHARACTERS:]
        self._live(self._tail.rstrip("\r"))

    def follow(self, entry: RecordedEvent) -> None:
        """Clear it when the program has ended: the next one starts with its own output."""
        if isinstance(entry.event, CommandEnded):
            self.end()

    def end(self) -> None:
        """Clear it, and keep what was printed for the fold of the run."""
        if self._tail:
            self._ended = (self._ended + self._tail)[-MAX_SHOWN_CHARACTERS // 2 :]
            self._tail = ""
            self._live("")

    def clear(self) -> None:
        """Forget everything: a program that was cut off does not end by itself."""
        self._tail = self._ended = ""
        self._live("")

    def take(self) -> str:
        """What the programs that ended since the last time printed."""
        taken, self._ended = self._ended, ""
        return taken
