"""Import sessions from portable files. Each file is verified first, and grants from elsewhere are revoked.

holdfast import backup.zip
holdfast import backup/*.zip         files that cannot be imported are reported, the others are imported
holdfast import backup.zip --model anthropic:claude-sonnet-5-5 -w ~/shop

A file is imported completely or not at all. It decides nothing about this machine: the model, policy and folder that it names are
shown and not used, and its budget is at most the one of your config.toml. The session continues under your own policy and model,
and the files of its last turn are restored to its own folder, or to an empty folder (-w). Protected files, such as those in `.git`
and `.holdfast`, are not restored.

What the file says is a stranger's, unless this data directory exported it, or one whose key is in `trusted-export-keys`.

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
from holdfast.core import (
    BUDGET_DIMENSIONS,
    Limits,
    SystemClock,
    escape_to_one_line,
    pluralize,
    runs_when,
)
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.events import Signer
from holdfast.store import SessionSummary

if TYPE_CHECKING:
    from holdfast.session import ImportedSession

PROGRESS = "checking the file"
_SIGNED: dict[Signer, str] = {
    "this-home": "exported here and unchanged: your words in it are yours, and its labels hold",
    "trusted-home": "exported by a data directory that you trust, and unchanged: your words in it are yours, its files a stranger's",
    "": "not signed by a data directory that you trust: everything in it counts as a stranger's",
}
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
    from holdfast.config import load_config
    from holdfast.models import parse_spec
    from holdfast.session import import_archive

    console = Console()
    if arguments.workspace is not None and len(arguments.file) > 1:
        raise InvalidInput("-w is for one file", hint="import the files one by one, or leave out -w")
    model = str(parse_spec(arguments.model)) if arguments.model else ""
    found: list[object] = []
    refused: list[HoldfastError] = []
    async with open_store() as (home, store):
        limits = load_config(home).budget
        for path in arguments.file:
            try:
                imported = await import_archive(
                    store,
                    home,
                    path,
                    now_ms=SystemClock().now_ms(),
                    model=model,
                    workspace=arguments.workspace,
                    limits=limits,
                    is_large=arguments.large,
                )
            except HoldfastError as problem:
                if len(arguments.file) == 1:
                    raise
                console.say(f"{path}: {problem}", "bad")
                refused.append(problem)
                continue
            summary = await store.summary(imported.session)
            found.append(
                msgspec.to_builtins(summary)
                | {
                    "wanted": imported.wanted,
                    "limits": imported.limits,
                    "executed": imported.executed,
                    "signer": imported.signer,
                }
            )
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
    _show_files(
        imported.protected, "not restored, because it is protected or leads out of the folder", console
    )
    for when, paths in _by_occasion(imported.executed).items():
        _show_files(paths, f"this runs when you {when}", console)
    console.say(_SIGNED[imported.signer])
    wanted = imported.wanted
    for what, name in (("model", wanted.model), ("policy", wanted.policy), ("folder", wanted.workspace)):
        if name:
            console.say(f"the file names the {what} {escape_to_one_line(name)}, which is not used here")
    reference = summary.name or imported.session
    console.say(f"imported, with {pluralize(summary.turns, 'turn')}; resume with: holdfast -r {reference}")
    if imported.limits != wanted.limits:
        asked = _budget(wanted.limits)
        console.say(
            f"the file has {f'the budget {asked}' if asked else 'no budget'}; where yours is stricter, yours applies"
        )
    if budget := _budget(imported.limits):
        origin = ", as in the file" if imported.limits == wanted.limits else ""
        console.say(f"its budget is {budget}{origin}; see it with: holdfast budget show {reference}")
    model = f"the model {summary.model}" if summary.model else "your own model (choose another with -m)"
    console.say(f"it continues with {model} and your own policy (choose another with -p)")


def _budget(limits: Limits) -> str:
    bounds = ((each, getattr(limits, each.field)) for each in BUDGET_DIMENSIONS)
    return ", ".join(f"{each.word}={each.format(bound)}" for each, bound in bounds if bound is not None)


def _by_occasion(paths: Sequence[str]) -> dict[str, list[str]]:
    """The files by what makes them run."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(runs_when(path) or "", []).append(path)
    return found


def _show_files(files: Sequence[str], reason: str, console: Console) -> None:
    for file in files[:MAX_SHOWN_FILES]:
        console.say(f"{reason}: {escape_to_one_line(file)}", "bad")
    if len(files) > MAX_SHOWN_FILES:
        console.say(f"{reason}: {pluralize(len(files) - MAX_SHOWN_FILES, 'more file')}", "bad")
