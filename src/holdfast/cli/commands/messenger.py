"""Talk with sessions from a chat service, and answer there what waits.

holdfast messenger                   the messengers of config.toml
holdfast messenger run               serve all of them until Ctrl-C
holdfast messenger run bot
"""

import argparse
import asyncio
import os
import signal

from holdfast.app import Runtime, configured_servers
from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import pluralize
from holdfast.core.errors import InvalidInput
from holdfast.services import notify_about
from holdfast.store import Home

_HINT = (
    "add a table to config.toml: [messengers.bot] with kind, token and members; see docs/guides/messengers.md"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("action", nargs="?", choices=["list", "run"], default="list", help="default: list")
    parser.add_argument("name", nargs="?", help="only this messenger")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """List the messengers, or serve them."""
    console, home = Console(), Home.default()
    settings = load_config(home)
    messengers = settings.messengers
    if arguments.name is not None:
        if arguments.name not in messengers:
            raise InvalidInput(f"config.toml has no messenger {arguments.name!r}", hint=_HINT)
        messengers = {arguments.name: messengers[arguments.name]}
    if arguments.action == "list":
        if arguments.json:
            console.json(
                [
                    {"name": name, "kind": each.kind, "members": each.members}
                    for name, each in messengers.items()
                ]
            )
        for name, each in messengers.items() if not arguments.json else ():
            console.show(f"{name}: {each.kind}, {pluralize(len(each.members), 'member')}")
    if not messengers and not arguments.json:
        console.say("no messengers are configured")
        console.say(_HINT, "dim", folds=True)
    if arguments.action == "list" or not messengers:
        return exit_codes.OK
    from holdfast.messengers import serve_messengers

    runtime = await Runtime.start(home=home.root, settings=settings, servers=configured_servers(home))
    try:
        serving = asyncio.create_task(serve_messengers(messengers, runtime=runtime, environ=os.environ))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        console.say(f"serving {', '.join(messengers)}; Ctrl-C ends it")
        async with notify_about(runtime.live_sessions, settings.notify, home=home):
            await asyncio.wait({serving})
        if not serving.cancelled():
            serving.result()
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await runtime.close()
    return exit_codes.OK
