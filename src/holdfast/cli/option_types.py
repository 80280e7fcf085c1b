"""Option types: the numbers and budgets that a person types, parsed once for every command."""

import argparse
import math
from collections.abc import Iterable

from holdfast.core import BUDGET_DIMENSIONS, Amount, Limits, parse_limits
from holdfast.core.errors import InvalidInput

MAX_NUMBER = 1_000_000_000


MAX_PORT = 65_535


def at_least_one(text: str) -> int:
    """A count of at least one."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MAX_NUMBER:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MAX_NUMBER:,}")
    return number


def port_number(text: str) -> int:
    """A port of this machine; 0 is any free one."""
    if not text.isascii() or not text.isdigit() or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {MAX_PORT}")
    return int(text)


def seconds(text: str) -> float:
    """A finite number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= MAX_NUMBER:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def add_added_folders(parser: argparse.ArgumentParser) -> None:
    """Define the option that opens further folders."""
    parser.add_argument(
        "--add-dir",
        metavar="DIR[:ro]",
        action="append",
        default=[],
        help="also let the agent use this folder without asking; :ro for reading only",
    )


def add_wait_for(parser: argparse.ArgumentParser) -> None:
    """Define the option that limits how long a call waits for approval."""
    parser.add_argument(
        "--wait-for",
        metavar="SECONDS",
        type=seconds,
        help="deny a call that was not answered in this time (default: it waits until it is answered)",
    )


def check_no_folder(arguments: argparse.Namespace) -> None:
    """Refuse -w and --trust beside --session, where they would have no effect. Raises InvalidInput."""
    given = "-w" if arguments.workspace is not None else "--trust" if arguments.trust else ""
    if given:
        raise InvalidInput(
            f"--session works in the session's own folder, so {given} has no effect", hint="leave it out"
        )


def budget_increase(
    amounts: Iterable[str], limits: Limits, *, command: str = "holdfast budget", stopped_by: str = ""
) -> Limits:
    """What to add to a session's limits, for `budget add`. Raises InvalidInput.

    Only a dimension that has a limit can be raised, or the one that stopped the last turn: that may be a limit of one turn.
    """
    texts = tuple(amounts)
    if not texts:
        raise InvalidInput("no amount is given", hint=f"for example: {command} add usd=1 tokens=50k")
    added = parse_limits(texts)
    for dimension in BUDGET_DIMENSIONS:
        amount = getattr(added, dimension.field)
        if amount is None:
            continue
        if not amount:
            raise InvalidInput(f"{dimension.word}=0 adds nothing", hint=f"for example {dimension.word}=10")
        if getattr(limits, dimension.field) is None and dimension.field != stopped_by:
            raise InvalidInput(
                f"{dimension.word} has no limit in this session, so nothing can be added to it",
                hint=f"{command} show lists the limits",
            )
    return added


def budget_lines(spent: Amount, limits: Limits) -> dict[str, str]:
    """A table line for each dimension by its field: what was spent of which limit."""
    lines: dict[str, str] = {}
    for dimension in BUDGET_DIMENSIONS:
        limit = getattr(limits, dimension.field)
        used = dimension.format(getattr(spent, dimension.field))
        bound = "no limit" if limit is None else dimension.format(limit)
        lines[dimension.field] = f"{dimension.word:<11} {used:>12} of {bound}"
    return lines
