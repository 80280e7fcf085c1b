"""Open a server that an agent runs in its sandbox to your browser, from another terminal.

holdfast preview 8000              the server of the newest session
holdfast preview 8000 NAME         of another session
holdfast preview 8000 --at 9000    at a port of your choice

It prints the address. The process that has the session open serves it until its sandbox closes. In the chat: /preview 8000.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core.errors import CommandError, InvalidInput, SessionHeld
from holdfast.gate import PreviewPort
from holdfast.services import request_of_holder

PROGRESS = "asking the process that has the session open"
_MAX_PORT = 65535


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("port", type=int, help="the port that the server listens on in the sandbox")
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--at", type=int, default=0, metavar="PORT", help="the port of this machine")
    parser.add_argument("--json", action="store_true", help="print the address as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Ask the holder of the session to forward the port, and print the address."""
    for port in (arguments.port, arguments.at or 1):
        if not 0 < port <= _MAX_PORT:
            raise InvalidInput(f"{port} is not a port", hint=f"a port is a number from 1 to {_MAX_PORT}")
    async with open_store() as (home, store):
        session = await resolve_session(store, arguments.session)
        try:
            await (await store.open(session)).release()
        except SessionHeld:
            request = PreviewPort(port=arguments.port, at=arguments.at)
            applied = await request_of_holder(home, store, session, request)
        else:
            raise CommandError(
                "no process has this session open, so none of its programs runs",
                hint=f"open it with: holdfast -r {session}",
            )
    if applied.error:
        raise CommandError(applied.error)
    address = f"http://127.0.0.1:{applied.result}/"
    if arguments.json:
        Console().json({"session": session, "port": arguments.port, "url": address})
    else:
        Console().print(address)
    return exit_codes.OK
