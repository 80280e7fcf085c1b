"""A timeline as text: one line for each entry, with a bar at its place in time."""

from collections.abc import Iterator
from datetime import datetime

from holdfast.cli.terminal.wrap import ellipsize, pad
from holdfast.core import escape_to_one_line
from holdfast.services import Timeline, TimelineEntry

_LABEL = 38
_MIN_BAR = 10


def timeline_lines(timeline: Timeline, *, width: int) -> Iterator[str]:
    """Each turn with its own scale, because people sleep between turns."""
    if not timeline.entries:
        yield "nothing happened yet"
        return
    for turn in sorted({entry.turn for entry in timeline.entries}):
        entries = [entry for entry in timeline.entries if entry.turn == turn]
        part = Timeline(entries=tuple(entries))
        started = datetime.fromtimestamp(part.start_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
        title = f"turn {turn}" if turn else "before the first turn"
        yield f"{title}, {started}, {_seconds(part.end_ms - part.start_ms)}"
        for entry in entries:
            yield _line(entry, part, width)


def _line(entry: TimelineEntry, part: Timeline, width: int) -> str:
    room = max(_MIN_BAR, width - _LABEL - 12)
    span = max(1, part.end_ms - part.start_ms)
    lasts = entry.length_ms is None
    length_ms = part.end_ms - entry.start_ms if entry.length_ms is None else entry.length_ms
    start = min(room - 1, (entry.start_ms - part.start_ms) * room // span)
    cells = max(1, min(room - start, round(length_ms * room / span)))
    mark = {"wait": "░", "restore-point": "◆", "refused": "✗", "rewind": "◀"}.get(entry.kind, "█")
    bar = " " * start + (mark if length_ms == 0 and not lasts else mark * cells)
    result = f" {entry.result}" if entry.result not in ("", "ok", "stop") else ""
    indent = "" if entry.kind == "turn" else "  "
    what = escape_to_one_line(" ".join(entry.what.split()))
    label = f"{indent}{entry.kind} {what}{escape_to_one_line(result)}"
    took = "..." if lasts else "" if length_ms == 0 else _seconds(length_ms)
    return f"{pad(ellipsize(label, _LABEL), _LABEL)} {pad(bar, room)} {took:>9}".rstrip()


def _seconds(milliseconds: int) -> str:
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
