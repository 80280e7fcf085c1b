"""The status line: model, tokens, cost, what is left, how full the context is, what runs and what waits."""

from decimal import Decimal

from holdfast.cli.chat.activity import Activity
from holdfast.core import DIMENSIONS, Dimension, budget_word
from holdfast.session import Session

_LONGEST_NAME = 32
_SPINNER = "|/-\\"


def status_line(session: Session, activity: Activity, *, queued: int, window_tokens: int | None) -> str:
    """One line of plain text."""
    spent = session.budget.spent
    # What the person has to do with comes first: a narrow terminal cuts the end off.
    parts = []
    if activity.doing:
        turn = _SPINNER[int(activity.seconds * 4) % len(_SPINNER)]
        parts.append(f"{turn} {activity.seconds:.0f}s {activity.doing}")
    counts = (
        (len(session.escalations()), "waits for you"),
        (queued, "queued"),
        (len(session.proposals()), "staged"),
    )
    parts += [f"{count} {what}" for count, what in counts if count]
    parts += [
        _model(session.status.model),
        f"{short(spent.tokens)} tokens",
        "cost unknown" if spent.cost_usd is None else f"${spent.cost_usd:.2f}",
        *_left(session),
    ]
    if activity.context_tokens:
        share = f" ({100 * activity.context_tokens // window_tokens}%)" if window_tokens else ""
        parts.append(f"context {short(activity.context_tokens)}{share}")
    return " · ".join(parts)


def _model(name: str) -> str:
    """A name that leaves room for the rest: the end of a long one tells more than its beginning."""
    if not name:
        return "no model"
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


def short(number: int) -> str:
    """A number in few letters: 950, 12.3k, 4.1M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def _left(session: Session) -> list[str]:
    """What a limit of the session leaves; a limit of a turn is no news."""
    bounded: list[Dimension] = [d for d in DIMENSIONS if getattr(session.budget.limits, d) is not None]
    rooms = [(dimension, session.budget.remaining(dimension)) for dimension in bounded]
    return [f"{_amount(room, dimension)} left" for dimension, room in rooms if room is not None]


def _amount(room: Decimal, dimension: Dimension) -> str:
    match dimension:
        case "cost_usd":
            return f"${room:.2f}"
        case "wall_seconds":
            return f"{room:.0f}s"
        case _:
            return f"{short(int(room))} {budget_word(dimension)}"
