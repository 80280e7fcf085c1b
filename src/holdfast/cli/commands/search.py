"""Find where something was said, in any session.

holdfast search "failing test"     all of these words, or words that begin so
holdfast search parser --limit 5 --json
holdfast search "quoted comma" --show     jump to the newest turn in which it was said

A hit names the session and the turn; `holdfast show SESSION --turn N` goes there. Exit codes: 1 when nothing is found.
"""

import argparse
import re

import msgspec

import holdfast.cli.commands.show as show
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.option_types import at_least_one
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.session_table import span
from holdfast.core import SystemClock

WORKING = "searches"


def configure(parser: argparse.ArgumentParser) -> None:
    """What to look for."""
    parser.add_argument("text", nargs="+", help="words, all of which must be there")
    parser.add_argument("--limit", type=at_least_one, default=20, metavar="N", help="at most N (default 20)")
    parser.add_argument("--show", action="store_true", help="jump to the newest of them: show that turn")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Search, and say where."""
    console = Console()
    async with open_store() as (_, store):
        found = await store.search(" ".join(arguments.text), limit=arguments.limit)
        names = {hit.session: (await store.summary(hit.session)).name for hit in found}
    if arguments.json:
        console.json([msgspec.structs.replace(hit, pieces=()) for hit in found])
        return exit_codes.OK if found else exit_codes.ERROR
    if not found:
        console.say("nothing found")
        return exit_codes.ERROR
    newest = found[0]
    if arguments.show:
        where = argparse.Namespace(
            session=newest.session, turn=newest.turn, events=False, follow=False, json=False
        )
        return await show.run(where)
    now_ms = SystemClock().now_ms()
    for hit in found:
        place = f"{names[hit.session] or hit.session} turn {hit.turn} ({span(now_ms - hit.at_ms)}): "
        first, *others = (re.sub(r"\s+", " ", piece) for piece in hit.pieces)
        console.tell_marked(place + first.lstrip(), *others)
    name = names[newest.session] or newest.session
    console.say(f"show a turn with: holdfast show {name} --turn {newest.turn}", "dim")
    return exit_codes.OK
