"""Write a configuration and a policy to start from, with comments that explain every field.

holdfast init                  yours: config.toml and policies/mine.yaml in Holdfast's data directory
holdfast init --project        this project's: .holdfast/config.toml and .holdfast/policy.yaml
holdfast init --dry-run        show the files without writing them

Existing files are not changed. A project's configuration can only restrict what your own configuration allows.
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
    """Define the options."""
    parser.add_argument(
        "--project",
        nargs="?",
        const=".",
        metavar="DIR",
        help="write for a project (default: the one in this folder)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the files without writing them")


async def run(arguments: argparse.Namespace) -> int:
    """Write the files that do not exist yet."""
    console, home = Console(), Home.default()
    if arguments.project is not None:
        folder = Path(arguments.project).absolute()
        if not folder.is_dir():
            raise InvalidInput(
                f"there is no folder {str(folder)!r}", hint="pass an existing folder, or create it first"
            )
        if (folder / PROJECT_CONFIG).resolve() == home.config.resolve():
            raise InvalidInput(
                f"{str(folder)!r} is not a project: it contains Holdfast's data directory",
                hint="change to a project folder; for your own files run: holdfast init",
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
        console.say("next: edit them, then check them with holdfast config and holdfast doctor")
    return exit_codes.OK


def _offer(console: Console, path: Path, text: str, *, is_shown: bool, is_own: bool) -> None:
    if path.exists():
        console.say(f"already exists, not changed: {path}", "ask")
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
