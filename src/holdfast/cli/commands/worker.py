"""Run the turns of sessions that many machines share.

holdfast worker --store URL                        take jobs until it is stopped
holdfast worker --store URL --places 50            up to 50 sessions at once
holdfast worker --store URL --queues default,gpu   only of these queues
holdfast post SESSION TEXT --store URL             from anywhere: send a message to a session

Start as many as you like, on any machine. A worker also serves the queue of its machine, for sessions that work in a folder
of it. On SIGTERM or Ctrl-C it takes no new jobs and lets each
turn finish its current step; another worker resumes the turn. A second signal does not wait. After an outage of the database it continues. Exit codes: 0 after a stop.
"""

import argparse
import asyncio
import os
import signal
import socket
import sys

from holdfast.app import Runtime, configured_servers
from holdfast.cli import exit_codes
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.shared_store import add_store_option, chosen_store
from holdfast.cli.telemetry import add_telemetry_options, telemetry
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import SessionId, pluralize
from holdfast.core.errors import InvalidInput
from holdfast.guests import signing_key_id
from holdfast.services import notify_about
from holdfast.session import Session
from holdfast.store import HOST_QUEUE, Home, WorkStore, store_status
from holdfast.worker import DEFAULT_QUEUE, DRAIN_SECONDS, Worker, find_dispatch

PLACES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    add_store_option(parser)
    parser.add_argument(
        "--places", type=int, default=PLACES, metavar="N", help=f"sessions at once (default: {PLACES})"
    )
    parser.add_argument(
        "--queues", default=DEFAULT_QUEUE, metavar="NAMES", help=f"queues to serve (default: {DEFAULT_QUEUE})"
    )
    parser.add_argument(
        "--drain",
        type=float,
        default=DRAIN_SECONDS,
        metavar="SECONDS",
        help=f"how long a stop waits for the calls that run (default: {DRAIN_SECONDS:.0f})",
    )
    add_telemetry_options(parser)
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="stop also when the standard input ends"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Work until the process is asked to stop."""
    console = Console()
    url = chosen_store(arguments)
    queues = tuple(dict.fromkeys(name.strip() for name in arguments.queues.split(",") if name.strip()))
    if not queues:
        raise InvalidInput("a worker needs a queue", hint=f"use --queues {DEFAULT_QUEUE}")
    home = Home.default()
    dispatch = await find_dispatch(url)
    runtime = await Runtime.start(
        home=home.root, settings=load_config(home), servers=configured_servers(home), store_url=url
    )
    try:
        print_store_notices(runtime.store, console)
        for risk in (await store_status(url)).risks:
            console.say(f"note: the store is not safe: {risk}", "ask")
        store = runtime.store
        assert isinstance(store, WorkStore)
        assert runtime.posted_requests is not None

        async def resume(session: SessionId) -> Session:
            return await runtime.resume(session)

        worker = Worker(
            store=store,
            dispatch=dispatch,
            resume=resume,
            requests=runtime.posted_requests,
            drain_seconds=arguments.drain,
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        if arguments.until_stdin_closes:
            await _stop_at_end_of_input(worker)
        await store.announce(f"worker of {', '.join(queues)}", key=signing_key_id(home.key()))
        places = pluralize(arguments.places, "session")
        ways = "" if arguments.until_stdin_closes else "; stop it with Ctrl-C"
        console.say(f"worker {os.getpid()}: up to {places} at once{ways}")
        served = (*queues, f"{HOST_QUEUE}{socket.gethostname()}")
        async with (
            telemetry(arguments, runtime, console),
            notify_about(runtime.live_sessions, runtime.settings.notify, home=home),
        ):
            await worker.run(places=arguments.places, queues=served)
        if not arguments.until_stdin_closes:  # of `holdfast up`, which says it for all
            console.say("stopped; another worker resumes what was open")
    finally:
        await runtime.close()
    return exit_codes.OK


async def _stop_at_end_of_input(worker: Worker) -> None:
    class Ended(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            worker.stop()

    await asyncio.get_running_loop().connect_read_pipe(Ended, sys.stdin)
