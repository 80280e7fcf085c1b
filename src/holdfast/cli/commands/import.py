"""Import sessions from portable files. Each file is verified first, and grants from elsewhere are revoked.

holdfast import backup.zip
holdfast import backup/*.zip         files that cannot be imported are reported, the others are imported
holdfast import backup.zip --model anthropic:claude-sonnet-5-5 -w ~/shop

A file is imported completely or not at all. It decides nothing about this machine: the model, policy and folder that it names are
shown and not used. The session continues under your own policy and model, and the files of its last turn are restored to its own
folder, or to an empty folder (-w). Protected files, such as those in `.git` and `.holdfast`, are not restored.

Exit codes: 1 when a file was tampered with or its session already exists; 2 when a file is not an exported session.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import SystemClock, escape_to_one_line, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.store import SessionSummary

if TYPE_CHECKING:
    from holdfast.session import ImportedSession

PROGRESS = "checking the file"
MAX_SHOWN_FILES = 20
"""Files that are named one by one."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("file", type=Path, nargs="+", help="files written by `holdfast export`")
    parser.add_argument(
        "-m", "--model", metavar="PROVIDER:NAME", help="the model that the session continues with"
    )
    parser.add_argument(
        "-w", "--workspace", type=Path, metavar="DIR", help="an empty folder for the files of the session"
    )
    parser.add_argument(
        "--large",
        action="store_true",
        help="import a file that takes much memory: more than 64 MiB of history, or 80 MiB in one content",
    )
    parser.add_argument("--json", action="store_true", help="print the session as JSON; several as an array")


async def run(arguments: argparse.Namespace) -> int:
    """Verify and import each file."""
    from holdfast.models import parse_spec
    from holdfast.session import import_archive

    console = Console()
    if arguments.workspace is not None and len(arguments.file) > 1:
        raise InvalidInput("-w is for one file", hint="import the files one by one, or leave out -w")
    model = str(parse_spec(arguments.model)) if arguments.model else ""
    found: list[object] = []
    refused: list[HoldfastError] = []
    async with open_store() as (home, store):
        for path in arguments.file:
            try:
                imported = await import_archive(
                    store,
                    home,
                    path,
                    now_ms=SystemClock().now_ms(),
                    model=model,
                    workspace=arguments.workspace,
                    is_large=arguments.large,
                )
            except HoldfastError as problem:
                if len(arguments.file) == 1:
                    raise
                console.say(f"{path}: {problem}", "bad")
                refused.append(problem)
                continue
            summary = await store.summary(imported.session)
            found.append(msgspec.to_builtins(summary) | {"wanted": imported.wanted})
            if not arguments.json:
                _show(imported, summary, console)
    if arguments.json:
        console.json(found[0] if len(arguments.file) == 1 else found)
    if any(not isinstance(problem, InvalidInput) for problem in refused):
        return exit_codes.ERROR
    return exit_codes.USAGE if refused else exit_codes.OK


def _show(imported: "ImportedSession", summary: SessionSummary, console: Console) -> None:
    console.print(imported.session)
    _show_files(imported.missing, "missing, because it was not saved", console)
    _show_files(imported.protected, "not restored, because it is protected", console)
    wanted = imported.wanted
    for what, name in (("model", wanted.model), ("policy", wanted.policy), ("folder", wanted.workspace)):
        if name:
            console.say(f"the file names the {what} {escape_to_one_line(name)}, which is not used here")
    reference = summary.name or imported.session
    console.say(f"imported, with {pluralize(summary.turns, 'turn')}; resume with: holdfast -r {reference}")
    model = f"the model {summary.model}" if summary.model else "your own model (choose another with -m)"
    console.say(f"it continues with {model} and your own policy (choose another with -p)")


def _show_files(files: Sequence[str], reason: str, console: Console) -> None:
    for file in files[:MAX_SHOWN_FILES]:
        console.say(f"{reason}: {escape_to_one_line(file)}", "bad")
    if len(files) > MAX_SHOWN_FILES:
        console.say(f"{reason}: {pluralize(len(files) - MAX_SHOWN_FILES, 'more file')}", "bad")
