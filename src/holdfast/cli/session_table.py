"""Sessions as a person sees them in a list: a line each, below a heading where they are a table."""

from holdfast.cli.cells import cut, padded
from holdfast.cli.console import visible
from holdfast.core import counted
from holdfast.store import SessionSummary

_WIDE = 120
_WORDS = 48
_FOLDER = 24


def heading(width: int) -> str:
    """What stands above the lines of a table."""
    if width < _WIDE:
        return f"{'session':<29} {'name':<12} {'age':>4} {'state':<11} {'turns':>5} first words"[:width]
    return (
        f"{'session':<29} {'name':<16} {'age':>4} {'state':<12} {'turns':>5} {'cost':>7} "
        f"{'folder':<{_FOLDER}} first words"
    )


def row(line: SessionSummary, now_ms: int, *, width: int | None = None) -> str:
    """One session: a line of a table of this width, below its heading; or, without a width, one that stands alone."""
    age = span(now_ms - line.active_ms)
    words = cut(" ".join(visible(line.first_words).split()), _WORDS)
    name = f"{line.id:<28}{'*' if line.is_pinned else ' '}"
    if width is not None and width < _WIDE:
        short = (
            f"{name} {(line.name or '-')[:12]:<12} {age:>4} {state(line, now_ms):<11} {line.turns:>5} {words}"
        )
        return cut(short, width).rstrip()
    turns = f"{line.turns:>5}" if width is not None else padded(counted(line.turns, "turn"), 8)
    cost = "?" if line.cost_usd is None else f"${line.cost_usd:.2f}"
    folder = visible(line.folder)
    folder = folder if len(folder) <= _FOLDER else f"…{folder[1 - _FOLDER :]}"
    whole = (
        f"{name} {line.name or '-':<16} {age:>4} {state(line, now_ms):<12} {turns} {cost:>7} "
        f"{padded(folder, _FOLDER)} {words}"
    )
    return (whole if width is None else cut(whole, width)).rstrip()


def state(line: SessionSummary, now_ms: int) -> str:
    """The state in a word or two: `waiting 3m`, `paused`, `ready`."""
    if line.is_damaged:
        return "damaged"
    if line.waiting_since_ms is not None:
        return f"waiting {span(now_ms - line.waiting_since_ms)}"
    return line.activity if line.lifecycle == "open" else line.lifecycle


def span(milliseconds: int) -> str:
    """A stretch of time in its largest unit: 3m, 2h, 9d."""
    seconds = max(milliseconds, 0) // 1000
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
