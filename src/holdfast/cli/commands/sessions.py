"""List sessions, newest first.

holdfast sessions                  the newest 50
holdfast sessions --here           those that were started in this folder
holdfast sessions --limit 5 --json

Exit codes: 0 also when there are none.
"""

import argparse
import os
import shutil
import sys

from holdfast.cli import exits
from holdfast.cli.console import Console, visible
from holdfast.cli.storage import opened_store
from holdfast.core import SystemClock
from holdfast.store import SessionSummary

WORKING = "reads the list"
_WIDE = 120


def configure(parser: argparse.ArgumentParser) -> None:
    """How many, of which folder, and in what form."""
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most N (default 50)")
    parser.add_argument("--here", action="store_true", help="only those that were started in this folder")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Read the list and print it."""
    console = Console()
    async with opened_store() as (_, store):
        found = await store.sessions(limit=arguments.limit, folder=os.getcwd() if arguments.here else None)
    if arguments.json:
        console.json(found)
        return exits.OK
    if not found:
        console.say("no sessions yet; start one with: holdfast")
    now_ms = SystemClock().now_ms()
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in found:
        console.print(row(line, now_ms, width=width))
    return exits.OK


def row(line: SessionSummary, now_ms: int, *, width: int | None = None) -> str:
    """One line of the list: name, age, state, turns, cost, folder, first words; in a narrow terminal without some."""
    age = span(now_ms - line.active_ms)
    cost = "?" if line.cost_usd is None else f"${line.cost_usd:.2f}"
    words = " ".join(visible(line.first_words).split())[:48]
    folder = visible(line.folder)
    folder = f"…{folder[-23:]}" if len(folder) > 24 else folder
    pin = "*" if line.is_pinned else " "
    if width is not None and width < _WIDE:
        name = (line.name or "-")[:12]
        short = f"{line.id:<28}{pin} {name:<12} {age:>4} {state(line, now_ms):<11} {line.turns:>3} {words}"
        return short[:width].rstrip()
    whole = (
        f"{line.id:<28}{pin} {line.name or '-':<16} {age:>4} {state(line, now_ms):<12} {line.turns:>3} turns "
        f"{cost:>7} {folder:<24} {words}"
    )
    return whole[:width].rstrip()


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
