"""The session list as text: a table with a heading on a terminal, self-explanatory lines elsewhere."""

from holdfast.cli.terminal.wrap import ellipsize, pad
from holdfast.core import escape_invisible, escape_to_one_line, format_age, pluralize
from holdfast.store import Home, SessionSummary

_WIDE = 120
_WORDS = 48
_NAME = 16
_FOLDER = 24


def heading(width: int) -> str:
    """The heading of the table."""
    if width < _WIDE:
        above = f"{'session':<29} {'age':>4} {'state':<11} {'turns':>5} {'cost':>7} folder"
        return f"{above}\n  name | first words"
    return (
        f"{'session':<29} {'name':<{_NAME}} {'age':>4} {'state':<12} {'turns':>5} {'cost':>7} "
        f"{'folder':<{_FOLDER}} first words"
    )


def row(line: SessionSummary, now_ms: int, *, width: int | None = None) -> str:
    """One session: a table row of this width, in two lines on a narrow terminal; without a width, a self-explanatory line."""
    session = f"{line.id:<28}{'*' if line.is_pinned else ' '}"
    age, name = format_age(now_ms - line.active_ms), _one_line(line.name or "-")
    cost = "?" if line.cost_usd is None else f"${line.cost_usd:.2f}"
    words = first_words(line)
    if width is None:
        turns = pad(pluralize(line.turns, "turn"), 8)
        start = f"{session} {pad(name, _NAME)} {age:>4} {state(line, now_ms):<12} {turns} {cost:>7}"
        return f"{start} {pad(_clip_start(folder_of(line), _FOLDER), _FOLDER)} {ellipsize(words, _WORDS)}".rstrip()
    if width < _WIDE:
        start = f"{session} {age:>4} {state(line, now_ms):<11} {line.turns:>5} {cost:>7} "
        above = f"{start}{_clip_start(folder_of(line), width - len(start))}"
        return f"{ellipsize(above, width)}\n{ellipsize(f'  {name} | {words}'.rstrip(), width)}"
    short = pad(ellipsize(name, _NAME), _NAME)
    start = f"{session} {short} {age:>4} {state(line, now_ms):<12} {line.turns:>5} {cost:>7} "
    start += f"{pad(_clip_start(folder_of(line), _FOLDER), _FOLDER)} "
    return ellipsize(f"{start}{words}".rstrip(), width)


def sentence(line: SessionSummary, now_ms: int, home: Home) -> str:
    """One session as a sentence: id, name, state, turns, cost, age and the folder that it works in."""
    name = f" ({_one_line(line.name)})" if line.name else ""
    pinned = ", pinned" if line.is_pinned else ""
    cost = "cost unknown" if line.cost_usd is None else f"${line.cost_usd:.2f}"
    age = format_age(now_ms - line.active_ms)
    place = _one_line(line.workspace or str(home.workspace(line.id)))
    return (
        f"{line.id}{name}{pinned}: {state(line, now_ms)}, {pluralize(line.turns, 'turn')}, {cost}, "
        f"last active {age} ago, works in {place}"
    )


def first_words(line: SessionSummary) -> str:
    """The title, or else the start of the first message, in one line."""
    return " ".join(escape_invisible(line.title or line.first_words).split())


def folder_of(line: SessionSummary) -> str:
    """The folder the session was started in, in one line."""
    return _one_line(line.folder)


def state(line: SessionSummary, now_ms: int) -> str:
    """The state in one or two words: `waiting 3m`, `paused`, `ready`."""
    if line.is_damaged:
        return "damaged"
    if line.waiting_since_ms is not None:
        return f"waiting {format_age(now_ms - line.waiting_since_ms)}"
    return line.activity if line.lifecycle == "open" else line.lifecycle


def _clip_start(folder: str, width: int) -> str:
    """The end of a path that fits into `width` cells, because paths differ at their end."""
    return ellipsize(folder[::-1], width)[::-1]


def _one_line(text: str) -> str:
    return escape_to_one_line(text).replace("\t", "<U+0009>")
