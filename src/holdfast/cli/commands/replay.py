"""Run a session's code again, without a model and without side effects, and report differences from the record.

holdfast replay            the newest session
holdfast replay NAME --json
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize
from holdfast.core.events import RunStarted
from holdfast.guests import Engines, Sandbox
from holdfast.models import MODEL_TOOLS
from holdfast.session import ASK_PERSON, VIEW_TOOLS, replay
from holdfast.world import WORLD_TOOLS

PROGRESS = "running the code again"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Run the recorded code again and report."""
    console = Console()
    async with open_store() as (home, store):
        session = await resolve_session(store, arguments.session)
        recorded = await store.read(session)
        engines = Engines(key=home.key(), cache=home.cache)
        sandboxes = {entry.event.engine for entry in recorded if isinstance(entry.event, RunStarted)}
        sandbox: Sandbox = "lisp" if sandboxes == {"lisp"} else "python"
        try:
            folder = home.session_folder(session)
            guest = engines.guest(sandbox, workspace=folder, view=folder)
            report = await replay(
                recorded,
                guest=guest,
                tools=(*WORLD_TOOLS, ASK_PERSON, *VIEW_TOOLS, *MODEL_TOOLS),
                fetch_blob=store.blob,
            )
            await guest.close()
        finally:
            await engines.close()
    if arguments.json:
        console.json(report)
    else:
        console.print(
            f"{pluralize(report.runs, 'run')} with {pluralize(report.calls, 'call')}, {len(report.divergences)} differ from the record"
        )
        if report.skipped:
            console.print(
                f"skipped: {pluralize(report.skipped, 'run')} that used files outside the journal, or continued such a run"
            )
        for each in report.divergences:
            console.print(f"  turn {each.turn}, run {each.run}: {each.what}")
    return exit_codes.ERROR if report.divergences else exit_codes.OK
