"""Write a configuration and a policy to start from, everything in them explained in comments.

holdfast init                  yours: config.toml and policies/mine.yaml in the home of Holdfast
holdfast init --project        this project's: .holdfast/config.toml and .holdfast/policy.yaml
holdfast init --dry-run        show what would be written, and write nothing

Files that are there already are left as they are. What a project says can only narrow what your own configuration allows.
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.config import (
    PROJECT_CONFIG,
    PROJECT_CONFIG_TEXT,
    PROJECT_POLICY_TEXT,
    config_text,
    policy_draft,
)
from holdfast.core.errors import InvalidInput
from holdfast.policy import PROJECT_POLICY, policy_text
from holdfast.store import Home, write_private

_POLICY = "mine"


def configure(parser: argparse.ArgumentParser) -> None:
    """For whom, and whether to write."""
    parser.add_argument(
        "--project",
        nargs="?",
        const=".",
        metavar="DIR",
        help="for a project (default: the one in this folder)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the files and write nothing")


async def run(arguments: argparse.Namespace) -> int:
    """Write what is missing."""
    console, home = Console(), Home.default()
    if arguments.project is not None:
        folder = Path(arguments.project).absolute()
        if not folder.is_dir():
            raise InvalidInput(f"there is no folder {str(folder)!r}", hint="name one that exists, or make it")
        if (folder / PROJECT_CONFIG).resolve() == home.config.resolve():
            raise InvalidInput(
                f"{str(folder)!r} is no project: the home of Holdfast is in it",
                hint="go to the folder of a project; for yourself it is holdfast init",
            )
        drafts = {folder / PROJECT_CONFIG: PROJECT_CONFIG_TEXT, folder / PROJECT_POLICY: PROJECT_POLICY_TEXT}
    else:
        drafts = {
            home.config: config_text(_POLICY),
            home.policies / f"{_POLICY}.yaml": policy_draft(policy_text("project"), _POLICY),
        }
        if not arguments.dry_run:
            home.prepare()
    for path, text in drafts.items():
        _offer(console, path, text, is_shown=arguments.dry_run, is_own=arguments.project is None)
    if not arguments.dry_run:
        console.say("next: edit them, then holdfast config and holdfast doctor look at what you wrote")
    return exit_codes.OK


def _offer(console: Console, path: Path, text: str, *, is_shown: bool, is_own: bool) -> None:
    if path.exists():
        console.say(f"is there already, left as it is: {path}", "ask")
    elif is_shown:
        console.say(f"would write {path}:", "strong")
        console.print(text)
    else:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_own:
            write_private(path, text.encode())
        else:
            with open(path, "x", encoding="utf-8") as draft:
                draft.write(text)
        console.print(str(path))
