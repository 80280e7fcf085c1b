"""List sessions, newest first."""

import argparse

from holdfast.cli import exits
from holdfast.cli.console import Console, visible
from holdfast.core import SystemClock
from holdfast.store import EmbeddedStore, Home


def configure(parser: argparse.ArgumentParser) -> None:
    """How many, and in what form."""
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most N (default 50)")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Read the index and print it."""
    console = Console()
    home = Home.default()
    home.prepare()
    clock = SystemClock()
    store = await EmbeddedStore.start(home, clock=clock)
    try:
        found = await store.sessions(limit=arguments.limit)
    finally:
        await store.close()
    if arguments.json:
        console.json(found)
        return exits.OK
    if not found:
        console.say("no sessions yet; start one with: holdfast")
    for session in found:
        age = _age((clock.now_ms() - session.active_ms) / 1000)
        words = visible(session.first_words).replace("\n", " ")[:50]
        console.print(
            f"{session.id:<28} {session.name or '-':<16} {age:>4} {session.activity:<10} {session.turns:>3} turns  {words}"
        )
    return exits.OK


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(max(0, seconds))}s"
