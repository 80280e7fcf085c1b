"""Check the sandboxes, or build the one that must be built.

holdfast sandbox               test each engine
holdfast sandbox build         build CPython for WebAssembly, once; takes about half a minute
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.core.errors import HoldfastError
from holdfast.guests import Capabilities, Check, Engines, Sandbox, self_test
from holdfast.store import Home

SANDBOXES: tuple[Sandbox, ...] = ("python", "wasi", "lisp")

PROGRESS = "testing the sandboxes"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "action", nargs="?", choices=["check", "build"], default="check", help="default: check"
    )
    parser.add_argument("--json", action="store_true", help="print the capabilities of each engine as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Build the wasi sandbox, or test each engine."""
    console = Console()
    home = Home.default()
    home.prepare()
    engines = Engines(key=home.key(), cache=home.cache, progress=lambda line: console.say(line, "dim"))
    try:
        if arguments.action == "build":
            await engines.prepare()
            console.say("the wasi sandbox is ready")
            return exit_codes.OK
        with tempfile.TemporaryDirectory() as folder:
            return await _show(engines, Path(folder), arguments.json, console)
    finally:
        await engines.close()


async def _show(engines: Engines, folder: Path, is_json: bool, console: Console) -> int:
    found = []
    is_ok = True
    for sandbox in SANDBOXES:
        try:
            engine = engines.engine(sandbox, workspace=folder, view=folder / "view")
            is_built = not engines.needs_building(sandbox)
            checks = await self_test(engine) if is_built else ()
        except HoldfastError as error:
            console.say(f"{sandbox}: {error}", "bad")
            is_ok = False
            continue
        found.append({"capabilities": engine.capabilities, "is_built": is_built, "checks": checks})
        is_ok = is_ok and all(check.is_passed for check in checks)
        if not is_json:
            _print_engine(sandbox, engine.capabilities, is_built, checks, console)
    if is_json:
        console.json(found)
    return exit_codes.OK if is_ok else exit_codes.ERROR


def _print_engine(
    sandbox: Sandbox,
    capabilities: Capabilities,
    is_built: bool,
    checks: Sequence[Check],
    console: Console,
) -> None:
    console.print(f"{sandbox:<8}{capabilities.version}")
    for note in capabilities.notes:
        console.print(f"        {note}")
    if not is_built:
        console.print("        not built yet: holdfast sandbox build")
    for check in checks:
        console.print(
            f"        {'ok    ' if check.is_passed else 'FAILED'}  {check.name}  {check.seen}".rstrip()
        )
