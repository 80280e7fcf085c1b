"""The picker: a person chooses one of many, by typing a part of it or, where nothing may be drawn, by its number."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli.terminal.console import MessageOutput
from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.wrap import ellipsize

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

MAX_ROWS = 12
"""As many as leave room for the rest on a terminal of 24 lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something to choose: what it is, the line that shows it, and the words that find it."""

    key: str
    line: str
    words: str


class Selection:
    """What is typed, what fits it, and which of that is marked. Knows of no terminal."""

    def __init__(self, choices: Sequence[Choice], *, rows: int = MAX_ROWS) -> None:
        self._choices = choices
        self._rows = rows
        self._index = 0
        self._first = 0
        self.query = ""
        self.matches = list(choices)

    @property
    def selected(self) -> Choice | None:
        """The one that Enter takes; None where nothing fits."""
        return self.matches[self._index] if self.matches else None

    @property
    def shown(self) -> list[Choice]:
        """The part of the list that is on the screen; the marked one is always in it."""
        return self.matches[self._first : self._first + self._rows]

    def move(self, steps: int) -> None:
        """Mark another one; the ends of the list hold."""
        self._index = max(0, min(self._index + steps, len(self.matches) - 1))
        self._first = max(self._index - self._rows + 1, min(self._first, self._index))

    def type(self, text: str) -> None:
        """Leave what holds every word that is typed, in any order and any case."""
        self.query += text
        self._filter()

    def erase(self) -> None:
        """Take the last character back."""
        self.query = self.query[:-1]
        self._filter()

    def clear(self) -> None:
        """Take everything back that was typed."""
        self.query = ""
        self._filter()

    def _filter(self) -> None:
        wanted = self.query.casefold().split()
        self.matches = [one for one in self._choices if all(word in one.words.casefold() for word in wanted)]
        self._index = self._first = 0


async def pick(choices: Sequence[Choice], *, title: str, teller: MessageOutput, is_plain: bool) -> str | None:
    """The key of the one that the person chose; None where they chose none."""
    if is_plain:
        return await _pick_by_number(choices, title, teller)
    return await _application(Selection(choices), title).run_async()


async def _pick_by_number(choices: Sequence[Choice], title: str, teller: MessageOutput) -> str | None:
    keyboard = LineKeyboard(write=lambda text: print(text, end="", file=sys.stderr, flush=True))
    fitting = list(choices)
    keyboard.open()
    try:
        while True:
            for number, choice in enumerate(fitting[:MAX_ROWS], start=1):
                teller.say(f"{number:>3}  {choice.line}")
            if len(fitting) > MAX_ROWS:
                teller.say(f"     and {len(fitting) - MAX_ROWS} more")
            answer = await keyboard.line(f"{title}: a number, words to look for, or Enter to leave> ")
            if not answer:
                return None
            if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= min(len(fitting), MAX_ROWS):
                return fitting[int(answer) - 1].key
            selection = Selection(choices)
            selection.type(answer)
            if selection.matches:
                fitting = selection.matches
            else:
                teller.say(f"nothing here holds {answer!r}")
    finally:
        keyboard.close()


def _application(selection: Selection, title: str) -> "Application[str | None]":
    from prompt_toolkit.application import Application
    from prompt_toolkit.layout import FormattedTextControl, Layout, Window
    from prompt_toolkit.output import create_output

    # On stderr, so that stdout stays free for what is asked of the session.
    output = create_output(stdout=sys.stderr)

    def text() -> "StyleAndTextTuples":
        lines: StyleAndTextTuples = [("bold", f"{title}: "), ("", f"{selection.query}"), ("reverse", " ")]
        for choice in selection.shown:
            is_marked = choice is selection.selected
            line = ellipsize(f"{'>' if is_marked else ' '} {choice.line}", output.get_size().columns)
            lines.append(("", "\n"))
            lines.append(("reverse" if is_marked else "", line))
        count = len(selection.matches)
        hidden = count - len(selection.shown)
        more = f", {hidden} more by going down or typing" if hidden else ""
        found = f"{count} found{more}" if count else "nothing fits"
        lines.append(("fg:ansibrightblack", f"\n  {found}; arrows and Enter choose, Esc leaves"))
        return lines

    return Application(
        layout=Layout(Window(FormattedTextControl(text, show_cursor=False), wrap_lines=False)),
        key_bindings=_keys(selection),
        output=output,
        erase_when_done=True,
        full_screen=False,
    )


def _keys(selection: Selection) -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.keys import Keys

    keys = KeyBindings()
    for name, steps in (("up", -1), ("down", 1), ("pageup", -MAX_ROWS), ("pagedown", MAX_ROWS)):
        keys.add(name)(lambda _, steps=steps: selection.move(steps))
    for name in ("c-p", "c-n"):
        keys.add(name)(lambda _, steps=1 if name == "c-n" else -1: selection.move(steps))
    keys.add("backspace")(lambda _: selection.erase())
    keys.add("c-u")(lambda _: selection.clear())

    @keys.add("enter")
    def _take(event: "KeyPressEvent") -> None:
        if selection.selected is not None:
            event.app.exit(result=selection.selected.key)

    @keys.add("escape", eager=True)
    @keys.add("c-c")
    @keys.add("c-d")
    def _leave(event: "KeyPressEvent") -> None:
        event.app.exit(result=None)

    @keys.add(Keys.Any)
    def _type(event: "KeyPressEvent") -> None:
        if event.data.isprintable():
            selection.type(event.data)

    @keys.add(Keys.BracketedPaste)
    def _paste(event: "KeyPressEvent") -> None:
        selection.type(" ".join(event.data.split()))

    return keys
