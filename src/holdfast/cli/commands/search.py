"""Search the text of all sessions.

holdfast search "failing test"     turns that contain all of these words, or words that start with them
holdfast search parser --limit 5 --json
holdfast search "quoted comma" --show     show the newest matching turn

A hit names the session and the turn; `holdfast show SESSION --turn N` shows it. Exit codes: 1 when nothing is found.
"""

import argparse
import re

import holdfast.cli.commands.show as show
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.option_types import at_least_one
from holdfast.cli.terminal.console import Console
from holdfast.core import SystemClock, format_age
from holdfast.services import search_sessions

PROGRESS = "searching"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("text", nargs="+", help="words that must all occur")
    parser.add_argument(
        "--limit", type=at_least_one, default=20, metavar="N", help="show at most N (default 20)"
    )
    parser.add_argument("--show", action="store_true", help="show the newest matching turn")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Search and print the hits."""
    console = Console()
    async with open_store(only_reads=True) as (_, store):
        found = await search_sessions(store, " ".join(arguments.text), limit=arguments.limit)
    if arguments.json:
        console.json(found)
        return exit_codes.OK if found else exit_codes.ERROR
    if not found:
        console.say("nothing was found")
        return exit_codes.ERROR
    newest = found[0]
    if arguments.show:
        where = argparse.Namespace(
            session=newest.session, turn=newest.turn, events=False, full=False, follow=False, json=False
        )
        return await show.run(where)
    now_ms = SystemClock().now_ms()
    for hit in found:
        place = f"{hit.name or hit.session} turn {hit.turn} ({format_age(now_ms - hit.at_ms)}): "
        first, *others = (re.sub(r"\s+", " ", piece) for piece in hit.pieces)
        console.show_highlighted(place + first.lstrip(), *others)
    name = newest.name or newest.session
    console.say(f"show a turn with: holdfast show {name} --turn {newest.turn}", "dim")
    return exit_codes.OK
