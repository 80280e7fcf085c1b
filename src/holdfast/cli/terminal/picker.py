"""A picker: the user finds one of many entries by typing part of it, and opens, renames, pins or deletes it.

In plain mode it lists the entries by number, and only opens them.
"""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.cli.terminal.console import MessageOutput
from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.wrap import ellipsize
from holdfast.core import Value

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

MAX_ROWS = 12
PREVIEW_ROWS = 6
"""Together they fit a terminal of 24 lines."""
HELP = "Enter opens, ^R renames, ^T pins, ^X deletes, Esc quits"


Action = Literal["choose", "rename", "pin", "delete"]
ACTION_KEYS: dict[str, Action] = {"enter": "choose", "c-r": "rename", "c-t": "pin", "c-x": "delete"}
Preview = Callable[[str], Awaitable[Sequence[str]]]
"""Loads a few lines about an entry, by its key."""


class Choice(Value):
    """One entry: its key, the line that shows it, and the text that the search matches."""

    key: str
    line: str
    search_text: str


class Picked(NamedTuple):
    """What the user wants to do with which entry."""

    action: Action
    key: str


class Selection:
    """The query, the entries that match it, and the selected one. Independent of the terminal."""

    def __init__(self, choices: Sequence[Choice], *, rows: int = MAX_ROWS) -> None:
        self._rows = rows
        self._index = 0
        self._first = 0
        self.query = ""
        self.matches: list[Choice] = []
        self._entries: list[tuple[str, Choice]] = []
        """Every entry with its text in the form in which it is searched."""
        self._found: list[tuple[str, Choice]] = []
        self.extend(choices)

    @property
    def selected(self) -> Choice | None:
        """The entry that Enter chooses; None if nothing matches."""
        return self.matches[self._index] if self.matches else None

    @property
    def shown(self) -> list[Choice]:
        """The visible part of the list. It always contains the selected entry."""
        return self.matches[self._first : self._first + self._rows]

    def extend(self, choices: Sequence[Choice]) -> None:
        """Add entries at the end. The selected one stays."""
        new = [(each.search_text.casefold(), each) for each in choices]
        self._entries += new
        found = self._matching(new)
        self._found += found
        self.matches += [each for _, each in found]

    def replace(self, key: str, choice: Choice | None) -> None:
        """Show an entry otherwise, or not at all. The place stays, and so does the query unless it would hide the entry."""
        new = None if choice is None else (choice.search_text.casefold(), choice)
        changed = ((new if each[1].key == key else each) for each in self._entries)
        self._entries = [each for each in changed if each is not None]
        if new is not None and not self._matching([new]):
            self.query = ""
        self._found = self._matching(self._entries)
        self.matches = [each for _, each in self._found]
        if choice is not None:
            self._index = self.matches.index(choice)
        self.move(0)

    def move(self, steps: int) -> None:
        """Move the selection; it stops at both ends."""
        self._index = max(0, min(self._index + steps, len(self.matches) - 1))
        self._first = max(self._index - self._rows + 1, min(self._first, self._index))

    def type(self, text: str) -> None:
        """Extend the query. An entry matches if it contains every word, in any order and case."""
        self.query += text
        # Each word is in what matched already, or longer than one that is: only those need another look.
        self._filter(self._found)

    def erase(self) -> None:
        """Delete the last character of the query."""
        self.query = self.query[:-1]
        self._filter(self._entries)

    def clear(self) -> None:
        """Delete the query."""
        self.query = ""
        self._filter(self._entries)

    def _filter(self, entries: list[tuple[str, Choice]]) -> None:
        self._found = self._matching(entries)
        self.matches = [each for _, each in self._found]
        self._index = self._first = 0

    def _matching(self, entries: list[tuple[str, Choice]]) -> list[tuple[str, Choice]]:
        wanted = self.query.casefold().split()
        return [each for each in entries if all(word in each[0] for word in wanted)]


async def pick(
    selection: Selection,
    *,
    title: str,
    output: MessageOutput,
    is_plain: bool,
    preview: Preview | None = None,
    load_more: Callable[[], Awaitable[None]] | None = None,
) -> Picked | None:
    """What the user wants to do with which entry; None if nothing.

    `load_more` extends the selection while the list is on the screen.
    """
    if is_plain:
        if load_more is not None:
            await load_more()
        key = await _pick_by_number(selection.matches, title, output)
        return None if key is None else Picked("choose", key)
    return await _Picker(selection, title, preview, load_more).run()


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


class _Picker:
    """The list on the terminal, with a preview of the selected entry."""

    def __init__(
        self,
        selection: Selection,
        title: str,
        preview: Preview | None,
        load_more: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._selection = selection
        self._title = title
        self._preview = preview
        self._load_more = load_more
        self._is_loading = False
        self._previews: dict[str, Sequence[str]] = {}

    async def run(self) -> Picked | None:
        from prompt_toolkit.application import Application
        from prompt_toolkit.layout import FormattedTextControl, Layout, Window
        from prompt_toolkit.output import create_output

        # On stderr, because stdout is for the answer of the session.
        self._output = create_output(stdout=sys.stderr)
        self._application: Application[Picked | None] = Application(
            layout=Layout(Window(FormattedTextControl(self._text, show_cursor=False), wrap_lines=False)),
            key_bindings=self._keys(),
            output=self._output,
            erase_when_done=True,
            full_screen=False,
        )
        return await self._application.run_async(pre_run=self._begin)

    def _begin(self) -> None:
        if self._load_more is not None:
            self._is_loading = True
            self._application.create_background_task(self._extend(self._load_more))
        self._look()

    async def _extend(self, load_more: Callable[[], Awaitable[None]]) -> None:
        await load_more()
        self._is_loading = False
        self._application.invalidate()

    def _look(self) -> None:
        """Load the preview of the selected entry, unless it is there."""
        chosen = self._selection.selected
        if self._preview is not None and chosen is not None and chosen.key not in self._previews:
            self._previews[chosen.key] = ()
            self._application.create_background_task(self._show_preview(self._preview, chosen.key))

    async def _show_preview(self, preview: Preview, key: str) -> None:
        self._previews[key] = await preview(key)
        self._application.invalidate()

    def _text(self) -> "StyleAndTextTuples":
        selection, columns = self._selection, self._output.get_size().columns
        lines: StyleAndTextTuples = [
            ("bold", f"{self._title}: "),
            ("", f"{selection.query}"),
            ("reverse", " "),
        ]
        for choice in selection.shown:
            is_selected = choice is selection.selected
            line = ellipsize(f"{'>' if is_selected else ' '} {choice.line}", columns)
            lines.append(("", "\n"))
            lines.append(("reverse" if is_selected else "", line))
        chosen = selection.selected
        for line in self._previews.get(chosen.key, ())[:PREVIEW_ROWS] if chosen is not None else ():
            lines.append(("fg:ansibrightblack", "\n" + ellipsize(f"  {line}", columns)))
        count = len(selection.matches)
        found = f"{count:,} found" if count else "nothing matches"
        found += " so far" if self._is_loading else ""
        lines.append(("fg:ansibrightblack", "\n" + ellipsize(f"  {found}; {HELP}", columns)))
        return lines

    def _keys(self) -> "KeyBindings":
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.keys import Keys

        keys, selection = KeyBindings(), self._selection

        def moves(steps: int) -> "Callable[[KeyPressEvent], None]":
            def move(_: "KeyPressEvent") -> None:
                selection.move(steps)
                self._look()

            return move

        for name, steps in (("up", -1), ("down", 1), ("pageup", -MAX_ROWS), ("pagedown", MAX_ROWS)):
            keys.add(name)(moves(steps))
        for name in ("c-p", "c-n"):
            keys.add(name)(moves(1 if name == "c-n" else -1))

        def ends(action: Action) -> "Callable[[KeyPressEvent], None]":
            def end(event: "KeyPressEvent") -> None:
                if selection.selected is not None:
                    event.app.exit(result=Picked(action, selection.selected.key))

            return end

        for name, action in ACTION_KEYS.items():
            keys.add(name)(ends(action))

        @keys.add("backspace")
        def _erase(_: "KeyPressEvent") -> None:
            selection.erase()
            self._look()

        @keys.add("c-u")
        def _clear(_: "KeyPressEvent") -> None:
            selection.clear()
            self._look()

        @keys.add("escape", eager=True)
        @keys.add("c-c")
        @keys.add("c-d")
        def _leave(event: "KeyPressEvent") -> None:
            event.app.exit(result=None)

        @keys.add(Keys.Any)
        def _type(event: "KeyPressEvent") -> None:
            if event.data.isprintable():
                selection.type(event.data)
                self._look()

        @keys.add(Keys.BracketedPaste)
        def _paste(event: "KeyPressEvent") -> None:
            selection.type(" ".join(event.data.split()))
            self._look()

        return keys
