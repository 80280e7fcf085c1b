"""The approval question at the terminal: the exact call as it fits the screen, and the possible answers."""

import difflib
import re
from collections.abc import Sequence

from holdfast.cli.terminal.wrap import cell_width, clip
from holdfast.core import Call, Escalation, Scope, is_question, pluralize
from holdfast.core.approval_text import describe_call_lines, visible
from holdfast.core.errors import HoldfastError
from holdfast.gate import MAX_AMOUNT
from holdfast.session import ASK_PERSON, Session

MAX_ROWS = 12
"""So that the question fits a screen of 24 rows."""
COLUMNS = 80
INDENT = 4
MAX_DIFF_CHARACTERS = 500_000
MAX_DIFF_LINES = 5_000
"""A larger file is shown as it would be written, because comparing it takes too long."""
MINUTES = 10
_LENGTHS: tuple[tuple[str, Scope, str], ...] = (
    ("t", "turn", "this turn"),
    ("n", "times", "a number of times"),
    ("m", "minutes", f"{MINUTES} minutes"),
    ("s", "session", "this session"),
    ("w", "always", "always, in every session"),
)


def exact_call(call: Call, session: Session | None = None) -> list[str]:
    """The exact call: a diff where a file would be written, else the arguments."""
    return [visible(line) for line in call_lines(call, session)]


def call_lines(call: Call, session: Session | None = None) -> list[str]:
    """The lines of the exact call, not escaped: what is not shown does not need to be."""
    if call.operation == ASK_PERSON.name:
        return str(call.arguments.get("question", "")).split("\n")
    lines = describe_call_lines(call)
    diff = _diff(call, session)
    return lines if diff is None else [*lines[:2], *(f"  {line}" for line in diff)]


def fit_lines(lines: Sequence[str], columns: int = COLUMNS) -> tuple[list[str], bool]:
    """The lines that fit into the rows of a call on a screen, cut and then escaped, and whether these are all."""
    kept: list[str] = []
    rows = 0
    for number, line in enumerate(lines):
        shown = visible(line) if len(line) <= MAX_ROWS * columns else ""
        height = max(1, -(-cell_width(shown) // (columns - INDENT))) if shown or not line else MAX_ROWS + 1
        if rows + height > MAX_ROWS - (number < len(lines) - 1 and rows + height == MAX_ROWS):
            return [*kept, *_start_of(line, MAX_ROWS - 1 - rows, columns), _left_out(lines)], False
        kept.append(shown)
        rows += height
    return kept, True


def _start_of(line: str, rows: int, columns: int) -> list[str]:
    """As much of a line as fits into some rows."""
    room = rows * (columns - INDENT) - 4
    return [f"{clip(visible(line[:room]), room)} ..."] if rows > 0 else []


def _left_out(lines: Sequence[str]) -> str:
    return f"... {pluralize(len(lines), 'line')} in total, too long to show here (v shows everything)"


def describe_cost(session: Session) -> str:
    """What the session has spent so far."""
    spent = session.budget.spent
    cost = "cost unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    return f"{spent.tokens:,} tokens, {cost}, {pluralize(spent.calls, 'call')}"


def choices(escalation: Escalation, *, is_whole: bool, is_edited: bool) -> list[tuple[str, str]]:
    """The possible answers by key. A call must be seen in full before it can be approved."""
    if is_question(escalation):
        return [("y", "answer"), ("n", "do not answer")]
    # A program waits for this connection, and cannot be given another one.
    is_connection = any(target.role == "proxy-domain" for target in escalation.targets)
    edit = [] if is_connection else [("e", "edit")]
    no = [("n", "deny"), ("r", "deny, say why"), *edit]
    if not is_whole:
        return [("v", "view all, to approve"), *no, ("?", "help")]
    more = [("a", "more")] if escalation.offers and not is_edited else []
    return [("y", "approve once"), *more, *no, ("?", "help")]


HELP = (
    "y approves this one call; a offers approvals that also cover later calls",
    "n denies it; r denies it with a reason, which the agent reads as you write it",
    "e opens the arguments in $EDITOR; what you save is judged again and shown to you",
    "v shows a long call in full; it cannot be approved before that",
    "/approve and /deny REASON work too, and every other /command",
)
"""What each key does."""


def lengths() -> list[tuple[str, str]]:
    """How long a saved approval can last, by key."""
    return [(key, words) for key, _, words in _LENGTHS]


def scope_of(key: str) -> Scope:
    """The length that a key stands for."""
    return next(scope for known, scope, _ in _LENGTHS if known == key)


def parse_amount(text: str) -> int | None:
    """A number of times or minutes; None if the text is not a valid one."""
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    return number if 1 <= number <= MAX_AMOUNT else None


def _diff(call: Call, session: Session | None) -> list[str] | None:
    path, content = call.arguments.get("path"), call.arguments.get("content")
    if (
        session is None
        or call.operation != "world.write"
        or not isinstance(path, str)
        or not isinstance(content, str)
        or len(content) > MAX_DIFF_CHARACTERS
    ):
        return None
    try:
        name = session.workspace.resolve(path)
        if session.workspace.exists(name) and session.workspace.stat(name).size > MAX_DIFF_CHARACTERS:
            return None
        before = session.workspace.read(name).decode() if session.workspace.exists(name) else None
    except (OSError, HoldfastError, UnicodeDecodeError):
        return None  # the call will fail anyway; show its arguments
    old, new = [] if before is None else before.split("\n"), content.split("\n")
    if max(len(old), len(new)) > MAX_DIFF_LINES:
        return None
    return list(
        difflib.unified_diff(
            old, new, "current" if before is not None else "new file", "proposed", lineterm=""
        )
    )
