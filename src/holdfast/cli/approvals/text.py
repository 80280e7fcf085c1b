"""The approval question at the terminal: the exact call as it fits the screen, and the possible answers."""

import re
from collections.abc import Sequence

from holdfast.cli.terminal.wrap import cell_width, clip
from holdfast.core import Escalation, Scope, is_question, pluralize
from holdfast.core.approval_text import SAVED_LENGTHS, visible
from holdfast.gate import MAX_AMOUNT
from holdfast.session import Session

MAX_ROWS = 12
"""So that the question fits a screen of 24 rows."""
COLUMNS = 80
INDENT = 4
_LENGTH_KEYS: dict[str, Scope] = {"t": "turn", "n": "times", "m": "minutes", "s": "session", "w": "always"}


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
    return [(key, SAVED_LENGTHS[scope]) for key, scope in _LENGTH_KEYS.items()]


def scope_of(key: str) -> Scope:
    """The length that a key stands for."""
    return _LENGTH_KEYS[key]


def parse_amount(text: str) -> int | None:
    """A number of times or minutes; None if the text is not a valid one."""
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    return number if 1 <= number <= MAX_AMOUNT else None
