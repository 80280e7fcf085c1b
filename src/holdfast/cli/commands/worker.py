"""Run the turns of sessions that many machines share.

holdfast worker --store URL                  take jobs until it is stopped
holdfast worker --store URL --places 50      up to 50 sessions at once
holdfast post SESSION TEXT --store URL       from anywhere: send a message to a session

Start as many as you like, on any machine with the same data directory. SIGTERM or Ctrl-C: it takes nothing new, records where
each turn is, and another worker resumes it. After an outage of the database it goes on by itself. Exit codes: 0 after a stop.
"""

import argparse
import asyncio
import os
import signal

from holdfast.app import Runtime, configured_servers
from holdfast.cli import exit_codes
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.shared_store import add_store_option, chosen_store
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import SessionId
from holdfast.services import notify_about
from holdfast.session import Session
from holdfast.store import Home, WorkStore
from holdfast.worker import Worker, open_dispatch

PLACES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    add_store_option(parser)
    parser.add_argument(
        "--places", type=int, default=PLACES, metavar="N", help=f"sessions at once (default: {PLACES})"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Work until the process is told to stop."""
    console = Console()
    url = chosen_store(arguments)
    home = Home.default()
    dispatch = open_dispatch(url)
    runtime = await Runtime.start(
        home=home.root, settings=load_config(home), servers=configured_servers(home), store_url=url
    )
    try:
        print_store_notices(runtime.store, console)
        store = runtime.store
        assert isinstance(store, WorkStore)

        async def resume(session: SessionId) -> Session:
            return await runtime.resume(session)

        worker = Worker(store=store, dispatch=dispatch, resume=resume)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        console.say(f"worker {os.getpid()}: up to {arguments.places} sessions at once; stop it with Ctrl-C")
        async with notify_about(runtime.live_sessions, runtime.settings.notify, home=home):
            await worker.run(places=arguments.places)
        console.say("stopped; another worker resumes what was open")
    finally:
        await runtime.close()
    return exit_codes.OK
