"""The status line: current activity, waiting calls, model, tokens, cost, remaining budget and context use."""

from decimal import Decimal

from holdfast.cli.chat.activity import Activity
from holdfast.cli.terminal.wrap import cell_width
from holdfast.core import DIMENSIONS, Amount, Dimension, budget_word
from holdfast.session import Session

_MAX_NAME_LENGTH = 32
_SEPARATOR = " · "
_SPINNER = "|/-\\"


def status_line(
    session: Session,
    activity: Activity,
    *,
    queued: int,
    mode: str = "",
    window_tokens: int | None,
    columns: int | None = None,
) -> str:
    """Build the status line. Of what does not fit into `columns`, the provider of the model goes first, then the model, the
    cost of the turn, limits and context.
    """
    spent, turn = session.budget.spent, session.budget.turn_spent
    # What needs the user comes first and is never left out.
    parts = [mode] if mode else []
    if activity.doing:
        spinner = _SPINNER[int(activity.seconds * 4) % len(_SPINNER)]
        parts.append(f"{spinner} {activity.seconds:.0f}s {activity.doing}")
    counts = (
        (len(session.escalations()), "waiting for you"),
        (queued, "queued"),
        (len(session.staged_paths()), "staged"),
    )
    parts += [f"{count} {what}" for count, what in counts if count]
    model, of_turn = _model(session.status.model), f"turn {short(turn.tokens)} tokens, {_cost(turn)}"
    remaining = remaining_limits(session)
    used = activity.context_tokens
    context = (
        [f"context {f'{100 * used // window_tokens}%' if window_tokens else short(used)}"] if used else []
    )
    parts += [model, of_turn, f"total {_cost(spent)}", *remaining, *context]

    def is_too_long() -> bool:
        return columns is not None and cell_width(_SEPARATOR.join(parts)) > columns

    if is_too_long() and (bare := model.partition(":")[2]):
        parts[parts.index(model)] = model = bare
    for least in (model, of_turn, *reversed(remaining), *context):
        if is_too_long():
            parts.remove(least)
    return _SEPARATOR.join(parts)


def _cost(amount: Amount) -> str:
    return "cost unknown" if amount.cost_usd is None else f"${amount.cost_usd:.2f}"


def short_model(model: str) -> str:
    """A model without the folder of its file and without the address of its server."""
    provider, colon, name = model.partition(":")
    return f"{provider}{colon}{name.rpartition('#')[2].rpartition('/')[2]}"


def _model(name: str) -> str:
    """The model name, shortened at its start: the end of a long name says more."""
    if not name:
        return "no model"
    name = short_model(name)
    return name if len(name) <= _MAX_NAME_LENGTH else f"…{name[1 - _MAX_NAME_LENGTH :]}"


def short(number: int) -> str:
    """A number in few characters: 950, 12.3k, 4.1M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def remaining_limits(session: Session) -> list[str]:
    """The remaining amount of each session limit. Turn limits are not shown."""
    bounded: list[Dimension] = [d for d in DIMENSIONS if getattr(session.budget.limits, d) is not None]
    remaining = [(dimension, session.budget.remaining(dimension)) for dimension in bounded]
    return [f"{_format(amount, dimension)} left" for dimension, amount in remaining if amount is not None]


def _format(amount: Decimal, dimension: Dimension) -> str:
    match dimension:
        case "cost_usd":
            return f"${amount:.2f}"
        case "wall_seconds":
            return f"{amount:.0f}s"
        case _:
            return f"{short(int(amount))} {budget_word(dimension)}"
