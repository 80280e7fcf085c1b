"""The sandboxes: what is installed and in force, and building the one that has to be built.

holdfast sandbox               each engine, tried for real
holdfast sandbox build         CPython in WebAssembly, once, about half a minute
"""

import argparse
import tempfile
from pathlib import Path

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.core.errors import HoldfastError
from holdfast.guests import Engines, Sandbox
from holdfast.store import Home

SANDBOXES: tuple[Sandbox, ...] = ("python", "wasi", "lisp")

WORKING = "tries the sandboxes"


def configure(parser: argparse.ArgumentParser) -> None:
    """What to do."""
    parser.add_argument(
        "action", nargs="?", choices=["check", "build"], default="check", help="default: check"
    )
    parser.add_argument("--json", action="store_true", help="what each engine can do, as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Build, or look at each engine."""
    console = Console()
    home = Home.default()
    home.prepare()
    engines = Engines(key=home.key(), cache=home.cache, progress=lambda line: console.say(line, "dim"))
    try:
        if arguments.action == "build":
            await engines.prepare()
            console.say("the wasi sandbox is ready")
            return exits.OK
        with tempfile.TemporaryDirectory() as folder:
            return _show(engines, Path(folder), arguments.json, console)
    finally:
        await engines.close()


def _show(engines: Engines, folder: Path, is_json: bool, console: Console) -> int:
    found = []
    for sandbox in SANDBOXES:
        try:
            capabilities = engines.guest(sandbox, workspace=folder, view=folder / "view").capabilities
        except HoldfastError as error:
            console.say(f"{sandbox}: {error}", "bad")
            continue
        found.append(capabilities)
        if not is_json:
            console.print(f"{sandbox:<8}{capabilities.version}")
            for note in capabilities.notes:
                console.print(f"        {note}")
    if is_json:
        console.json(found)
    return exits.OK if len(found) == len(SANDBOXES) else exits.ERROR
