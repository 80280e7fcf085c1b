"""Try many workers on this machine: a PostgreSQL server of its own, the web page, and workers, in one command.

holdfast up                               two workers, and the page
holdfast up --workers 4 --port 0          four workers, on any free port

The server comes from a wheel, keeps its data in the data directory and listens on no port: nothing is installed, and no user is
created. Other commands reach the same sessions with the address that it prints. Ctrl-C or SIGTERM stops everything; the sessions
stay. For more machines, use a server of your own: holdfast store init URL, holdfast worker, holdfast serve.
"""

import argparse
import asyncio
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.option_types import at_least_one, port_number
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize
from holdfast.store import STORE_VARIABLE, Home, migrate_store
from holdfast.worker import DRAIN_SECONDS, LocalPostgres, WorkerProcesses, install_dispatch

WORKERS = 2
LOOK_SECONDS = 1.0
"""How often to look whether the server still runs."""
_SETTINGS = ("max_connections=200", "unix_socket_permissions=0700")


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    from holdfast.web import DEFAULT_PORT

    parser.add_argument(
        "--workers", type=at_least_one, default=WORKERS, metavar="N", help=f"how many (default: {WORKERS})"
    )
    parser.add_argument(
        "--port",
        type=port_number,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"the port of the page (default: {DEFAULT_PORT})",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Run everything until the process is asked to stop."""
    console = Console()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    home = Home.default()
    home.prepare()
    server = LocalPostgres(home.postgres, settings=_SETTINGS)
    try:
        _start(server, home.postgres, console)
        await _run(server, arguments, console, stop)
    finally:
        server.stop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)
    console.say("stopped; the sessions are kept")
    return exit_codes.OK


def _start(server: LocalPostgres, folder: Path, console: Console) -> None:
    # Not in a thread: the kernel ends the server with the thread that started it.
    if not (folder / "data").exists():
        console.say(f"creating the data of a PostgreSQL server in {folder}; this takes a few seconds, once")
    server.create()
    server.start()


async def _run(
    server: LocalPostgres, arguments: argparse.Namespace, console: Console, stop: asyncio.Event
) -> None:
    from holdfast.web import serve_web

    url = server.url()
    await migrate_store(url)
    await install_dispatch(url)
    workers = WorkerProcesses(
        arguments.workers, environment={STORE_VARIABLE: url}, report=lambda text: console.say(text, "bad")
    )
    runtime = await Runtime.start(store_url=url)
    try:
        async with serve_web(runtime, port=arguments.port, is_remote=True) as page:
            workers.start()
            console.say(
                f"{pluralize(arguments.workers, 'worker')}, and the page at this link, which works once:"
            )
            console.print(page.link())
            console.say(
                f"other commands reach the same sessions with: export {STORE_VARIABLE}={shlex.quote(url)}"
            )
            console.say("press Ctrl-C to stop everything", "dim")
            sys.stdout.flush()
            await _keep(server, console, stop)
            console.say("stopping: calls that run may finish")
            await workers.stop(drain_seconds=DRAIN_SECONDS)
    finally:
        await workers.stop(drain_seconds=0)
        await runtime.close()


async def _keep(server: LocalPostgres, console: Console, stop: asyncio.Event) -> None:
    """Start the server again whenever it ends by itself, until everything is to stop. Raises StoreUnavailable."""
    while not stop.is_set():
        if not server.is_running:
            console.say("the PostgreSQL server ended; starting it again", "bad")
            server.stop()  # lets go of its folder
            server.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await stop.wait()
