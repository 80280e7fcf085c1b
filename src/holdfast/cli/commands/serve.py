"""Serve the web page and its API for sessions that workers run.

holdfast serve --store URL                the page, on this machine
holdfast serve --store URL --port 0       on any free port

It runs no session itself: messages, answers and every other request go to the workers through the store. Start several of them
if you like. The server listens on this machine only; for other machines, put a TLS proxy in front of it and name its address:
--origin https://NAME. The link works once, for five minutes. Stop it with Ctrl-C or SIGTERM.
"""

import argparse
import asyncio
import signal
import sys

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.option_types import port_number
from holdfast.cli.shared_store import add_store_option, chosen_store
from holdfast.cli.telemetry import add_telemetry_options, telemetry
from holdfast.cli.terminal.console import Console

PROGRESS = "starting the web server"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    from holdfast.web import DEFAULT_PORT

    add_store_option(parser)
    parser.add_argument(
        "--port",
        type=port_number,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"the port (default: {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--origin", metavar="URL", help="where a TLS proxy offers this server, such as https://box.example"
    )
    add_telemetry_options(parser)


async def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is asked to stop."""
    from holdfast.web import serve_web

    console = Console()
    url = chosen_store(arguments)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    runtime = await Runtime.start(store_url=url)
    try:
        async with (
            telemetry(arguments, runtime, console),
            serve_web(runtime, port=arguments.port, origin=arguments.origin, is_remote=True) as server,
        ):
            console.print(server.link())
            console.say("press Ctrl-C to stop the server; workers go on", "dim")
            sys.stdout.flush()
            await stop.wait()
    finally:
        await runtime.close()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)
    return exit_codes.OK
