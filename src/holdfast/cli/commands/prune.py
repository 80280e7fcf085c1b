"""Delete old sessions. Holdfast never prunes automatically.

holdfast prune --keep 50 --dry-run        show what would be deleted
holdfast prune --older-than 30d           delete sessions without activity for 30 days
holdfast prune --keep 20 --older-than 7d  both conditions must hold

Open sessions are kept, and so are pinned and named ones without --pinned-too or --named-too. Forks keep the part of their parent
that they need. A tombstone records each deletion. Exit codes: 1 when a session could not be deleted; 2 without --keep and --older-than.
"""

import argparse
import re
from functools import partial

from holdfast.cli import exit_codes
from holdfast.cli.input_history import forget_typed, typed_in
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.wrap import ellipsize
from holdfast.core import SystemClock, escape_invisible, format_age, pluralize
from holdfast.store import prune

_WORDS = 48
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

PROGRESS = "deleting sessions"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--keep", type=int, metavar="N", help="keep the newest N")
    parser.add_argument("--older-than", type=age_ms, metavar="AGE", help="age, such as 30m, 12h, 7d or 4w")
    parser.add_argument("--named-too", action="store_true", help="delete named sessions too")
    parser.add_argument("--pinned-too", action="store_true", help="delete pinned sessions too")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be deleted, and delete nothing"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Prune the sessions and report each one."""
    console = Console()
    now_ms = SystemClock().now_ms()
    async with open_store() as (home, store):
        pruning = partial(
            prune,
            store,
            now_ms=now_ms,
            keep=arguments.keep,
            older_than_ms=arguments.older_than,
            named_too=arguments.named_too,
            pinned_too=arguments.pinned_too,
        )
        report = await pruning(is_dry_run=True)
        if not arguments.dry_run:
            typed = await typed_in(home, store, [each.session for each in report.pruned])
            report = await pruning(is_dry_run=False)
            forget_typed(home, typed)
    has_failed = any(one.why == "failed" for one in report.spared)
    if arguments.json:
        console.json(report)
        return exit_codes.ERROR if has_failed else exit_codes.OK
    verb = "would be deleted" if report.is_dry_run else "deleted"
    for gone in report.pruned:
        age, turns = format_age(now_ms - gone.active_ms), pluralize(gone.turns, "turn")
        words = ellipsize(" ".join(escape_invisible(gone.first_words).split()), _WORDS)
        console.print(f"{verb}  {gone.session} {gone.name or '-'} ({age} old, {turns}) {words}".rstrip())
    for spared in report.spared:
        console.say(f"kept ({spared.why})  {spared.session} {spared.name or '-'} {spared.detail}".rstrip())
    console.say(
        f"{pluralize(len(report.pruned), 'session')} {verb}, {report.kept} {'would be kept' if report.is_dry_run else 'kept'}"
    )
    return exit_codes.ERROR if has_failed else exit_codes.OK


def age_ms(text: str) -> int:
    """`7d` in milliseconds."""
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; use 30m, 12h, 7d or 4w")
    return int(match[1]) * _UNITS_MS[match[2]]
