"""Open a page in your browser with everything that waits for you, and with all sessions.

holdfast web                      starts the server and opens the browser
holdfast web --no-browser         only prints the link
holdfast web --port 0             on any free port

The server listens on this machine only. The link works once, for five minutes. Stop the server with Ctrl-C: sessions that it
runs can be resumed. For other machines, put a TLS proxy in front of it and name its address: --origin https://NAME.
"""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.option_types import port_number
from holdfast.cli.terminal.console import Console
from holdfast.services import notify_about
from holdfast.store import Home, replace_private

PROGRESS = "starting the web server"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    from holdfast.web import DEFAULT_PORT

    parser.add_argument(
        "--port",
        type=port_number,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"the port (default: {DEFAULT_PORT})",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the link and open no browser")
    parser.add_argument(
        "--origin", metavar="URL", help="where a TLS proxy offers this server, such as https://box.example"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from holdfast.web import serve_web

    console = Console()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    runtime = await Runtime.start()
    try:
        async with (
            notify_about(runtime.live_sessions, runtime.settings.notify, home=runtime.home),
            serve_web(runtime, port=arguments.port, origin=arguments.origin) as server,
        ):
            link = server.link()
            if not arguments.no_browser and open_browser(runtime.home, link):
                console.say(
                    "opened the page in your browser; if it did not open, use this link, which works once:"
                )
            console.print(link)
            console.say("press Ctrl-C to stop the server; sessions can be resumed afterwards", "dim")
            sys.stdout.flush()
            await stop.wait()
    finally:
        await runtime.close()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)
    return exit_codes.OK


def open_browser(home: Home, link: str) -> bool:
    """Open the link in the browser of the desktop; False if there is none.

    The browser gets a private file that leads to the link, because every user can read the arguments of a process.
    """
    opener = shutil.which("xdg-open")
    if opener is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    page = home.cache / "web.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={link}"><title>Holdfast</title>'
    replace_private(page, text.encode())
    try:
        subprocess.Popen(  # noqa: S603
            [opener, str(page)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    return True
