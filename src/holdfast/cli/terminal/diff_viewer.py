"""The diff viewer: proposals on the full screen, accepted or rejected hunk by hunk with the keyboard."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.terminal.wrap import ellipsize, pad
from holdfast.cli.views.diff_lines import LineKind
from holdfast.cli.views.hunk_review import HunkReview, Row
from holdfast.world import HunkDecision, Proposal

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

_STYLES: dict[LineKind, str] = {
    "note": "fg:ansiyellow",
    "header": "bold",
    "hunk": "fg:ansicyan",
    "context": "",
    "added": "fg:ansigreen",
    "removed": "fg:ansired",
}
_MARK_CELLS = 6
_ROWS_AROUND = 3
"""The title, the summary and the keys."""
KEYS = "y yes  n no  space later  Y/N file  j/k hunk  J/K file  Enter apply  q quit"
SHORT_KEYS = "y/n/space  Y/N file  j/k J/K move  Enter apply  q quit"
ASKING_KEYS = "y do it   any other key goes back"


async def review(proposals: Sequence[Proposal]) -> tuple[HunkDecision, ...]:
    """What the person decided; empty if they left or decided nothing."""
    return await _Viewer(HunkReview(proposals)).application().run_async() or ()


class _Viewer:
    def __init__(self, hunks: HunkReview) -> None:
        self._hunks = hunks
        self._is_asking = False
        self._has_colour = not os.environ.get("NO_COLOR")

    def application(self) -> "Application[tuple[HunkDecision, ...]]":
        from prompt_toolkit.application import Application
        from prompt_toolkit.layout import FormattedTextControl, Layout, Window
        from prompt_toolkit.output import ColorDepth

        return Application(
            layout=Layout(Window(FormattedTextControl(self._text, show_cursor=False), wrap_lines=False)),
            key_bindings=self._keys(),
            color_depth=None if self._has_colour else ColorDepth.DEPTH_1_BIT,
            full_screen=True,
            erase_when_done=True,
        )

    def _size(self) -> tuple[int, int]:
        from prompt_toolkit.application import get_app

        size = get_app().output.get_size()
        return size.columns, max(1, size.rows - _ROWS_AROUND)

    def _text(self) -> "StyleAndTextTuples":
        columns, height = self._size()
        self._hunks.lay_out(columns - _MARK_CELLS)
        shown: StyleAndTextTuples = [
            ("reverse", pad(ellipsize(self._hunks.title, columns), columns)),
            ("", "\n"),
        ]
        rows = self._hunks.rows(height)
        for row in rows:
            shown += [*_drawn(row), ("", "\n")]
        shown.append(("", "\n" * (height - len(rows))))
        if self._is_asking:
            shown += [("bold", self._hunks.question), ("", "\n"), ("", ellipsize(ASKING_KEYS, columns))]
        else:
            shown += [
                ("bold", self._hunks.summary),
                ("", "\n"),
                ("", ellipsize(KEYS if len(KEYS) <= columns else SHORT_KEYS, columns)),
            ]
        return shown

    def _keys(self) -> "KeyBindings":
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.keys import Keys

        keys = KeyBindings()

        @keys.add(Keys.Any)
        @keys.add("enter")
        @keys.add("up")
        @keys.add("down")
        @keys.add("pageup")
        @keys.add("pagedown")
        def _press(event: "KeyPressEvent") -> None:
            self._press(event)

        @keys.add("c-c")
        @keys.add("c-d")
        @keys.add("escape", eager=True)
        def _leave(event: "KeyPressEvent") -> None:
            event.app.exit(result=())

        return keys

    def _press(self, event: "KeyPressEvent") -> None:
        key = event.key_sequence[0].key
        _, height = self._size()
        hunks = self._hunks
        if self._is_asking:
            self._is_asking = False
            if key == "y":
                event.app.exit(result=hunks.decisions())
            return
        match key:
            case "y":
                hunks.decide("accept", height)
            case "n":
                hunks.decide("reject", height)
            case " ":
                hunks.decide(None, height)
            case "Y":
                hunks.decide_file("accept", height)
            case "N":
                hunks.decide_file("reject", height)
            case "j":
                hunks.move(1, height)
            case "k":
                hunks.move(-1, height)
            case "J":
                hunks.move_file(1, height)
            case "K":
                hunks.move_file(-1, height)
            case "down" | "up":
                hunks.scroll(1 if key == "down" else -1)
            case "pagedown" | "pageup":
                hunks.scroll(height if key == "pagedown" else -height)
            case "c-m":
                self._is_asking = hunks.is_decided
            case "q":
                event.app.exit(result=())
            case _:
                pass


def _drawn(row: Row) -> "StyleAndTextTuples":
    """One row: the mark of the hunk or the bar of the current one, then the line with its changed words."""
    gutter = row.mark or ("  |  " if row.is_current else "")
    drawn: StyleAndTextTuples = [("bold" if row.is_current else "", pad(gutter, _MARK_CELLS))]
    style = _STYLES[row.line.kind]
    drawn += [(f"{style} reverse" if piece.is_changed else style, piece.text) for piece in row.line.pieces]
    return drawn
