"""Send a message to a session that workers run.

holdfast post NAME "run the tests again" --store URL
holdfast show NAME --follow                  watch the answer

The message is kept until a worker has recorded it, also while every worker is down. Exit codes: 0 once it is kept.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.redaction import LazyRedactor
from holdfast.cli.shared_store import add_store_option, chosen_store
from holdfast.cli.terminal.console import Console
from holdfast.core import SystemClock
from holdfast.store import Home, open_work_store
from holdfast.worker import find_dispatch, post_message

PROGRESS = "sending the message"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("session", help="id, prefix, last four characters or name")
    parser.add_argument("text", help="the message")
    add_store_option(parser)
    parser.add_argument("--id", help="an id of your own: a message with the same id is sent once")
    parser.add_argument(
        "--json", action="store_true", help="print the session and the id of the message as JSON"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Keep the message, and wake a worker."""
    console = Console()
    url = chosen_store(arguments)
    home = Home.default()
    store = await open_work_store(home, url, clock=SystemClock(), redact=LazyRedactor(home.root))
    try:
        session = await store.find(arguments.session)
        message = await post_message(
            store, await find_dispatch(url), session, arguments.text, id=arguments.id
        )
    finally:
        await store.close()
    if arguments.json:
        console.json({"session": session, "message": message})
    else:
        console.say(f"sent to {session}; follow it with: holdfast show {session} --follow")
    return exit_codes.OK
