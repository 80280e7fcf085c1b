"""A picker: the user chooses one of many entries by typing part of it, or in plain mode by its number."""

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
"""Fits a terminal of 24 lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One entry: its key, the line that shows it, and the text that the search matches."""

    key: str
    line: str
    search_text: str


class Selection:
    """The query, the entries that match it, and the selected one. Independent of the terminal."""

    def __init__(self, choices: Sequence[Choice], *, rows: int = MAX_ROWS) -> None:
        self._choices = choices
        self._rows = rows
        self._index = 0
        self._first = 0
        self.query = ""
        self.matches = list(choices)

    @property
    def selected(self) -> Choice | None:
        """The entry that Enter chooses; None if nothing matches."""
        return self.matches[self._index] if self.matches else None

    @property
    def shown(self) -> list[Choice]:
        """The visible part of the list. It always contains the selected entry."""
        return self.matches[self._first : self._first + self._rows]

    def move(self, steps: int) -> None:
        """Move the selection; it stops at both ends."""
        self._index = max(0, min(self._index + steps, len(self.matches) - 1))
        self._first = max(self._index - self._rows + 1, min(self._first, self._index))

    def type(self, text: str) -> None:
        """Extend the query. An entry matches if it contains every word, in any order and case."""
        self.query += text
        self._filter()

    def erase(self) -> None:
        """Delete the last character of the query."""
        self.query = self.query[:-1]
        self._filter()

    def clear(self) -> None:
        """Delete the query."""
        self.query = ""
        self._filter()

    def _filter(self) -> None:
        wanted = self.query.casefold().split()
        self.matches = [
            one for one in self._choices if all(word in one.search_text.casefold() for word in wanted)
        ]
        self._index = self._first = 0


async def pick(choices: Sequence[Choice], *, title: str, output: MessageOutput, is_plain: bool) -> str | None:
    """The key of the chosen entry; None if the user chose none."""
    if is_plain:
        return await _pick_by_number(choices, title, output)
    return await _application(Selection(choices), title).run_async()


async def _pick_by_number(choices: Sequence[Choice], title: str, output: MessageOutput) -> str | None:
    keyboard = LineKeyboard(write=lambda text: print(text, end="", file=sys.stderr, flush=True))
    matches = list(choices)
    keyboard.open()
    try:
        while True:
            for number, choice in enumerate(matches[:MAX_ROWS], start=1):
                output.say(f"{number:>3}  {choice.line}")
            if len(matches) > MAX_ROWS:
                output.say(f"     and {len(matches) - MAX_ROWS} more")
            answer = await keyboard.line(f"{title}: a number, words to search for, or Enter to quit> ")
            if not answer:
                return None
            if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= min(len(matches), MAX_ROWS):
                return matches[int(answer) - 1].key
            selection = Selection(choices)
            selection.type(answer)
            if selection.matches:
                matches = selection.matches
            else:
                output.say(f"nothing matches {answer!r}")
    finally:
        keyboard.close()


def _application(selection: Selection, title: str) -> "Application[str | None]":
    from prompt_toolkit.application import Application
    from prompt_toolkit.layout import FormattedTextControl, Layout, Window
    from prompt_toolkit.output import create_output

    # On stderr, because stdout is for the answer of the session.
    output = create_output(stdout=sys.stderr)

    def text() -> "StyleAndTextTuples":
        lines: StyleAndTextTuples = [("bold", f"{title}: "), ("", f"{selection.query}"), ("reverse", " ")]
        for choice in selection.shown:
            is_selected = choice is selection.selected
            line = ellipsize(f"{'>' if is_selected else ' '} {choice.line}", output.get_size().columns)
            lines.append(("", "\n"))
            lines.append(("reverse" if is_selected else "", line))
        count = len(selection.matches)
        hidden = count - len(selection.shown)
        more = f", {hidden} more: scroll down or type" if hidden else ""
        found = f"{count} found{more}" if count else "nothing matches"
        lines.append(("fg:ansibrightblack", f"\n  {found}; arrows and Enter choose, Esc quits"))
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
