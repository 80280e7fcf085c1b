"""Print a completion script for your shell: commands, options, choices and session names.

source <(holdfast completion bash)            in ~/.bashrc
source <(holdfast completion zsh)             in ~/.zshrc, after compinit
holdfast completion fish | source             in ~/.config/fish/config.fish
holdfast completion sessions                  the session names and ids, as the scripts request them

The script contains all words: Holdfast runs during completion only to list sessions.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console

_RECENT = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish", "sessions"], help="your shell")


async def run(arguments: argparse.Namespace) -> int:
    """Print the script, or the session names."""
    if arguments.shell == "sessions":
        return await _list_sessions(Console())
    from holdfast.cli.completion import SCRIPTS, command_specs

    Console().write(SCRIPTS[arguments.shell](command_specs()))
    return exit_codes.OK


async def _list_sessions(console: Console) -> int:
    from holdfast.cli.open_store import open_store
    from holdfast.store import Home

    if not Home.default().database.exists():
        return exit_codes.OK  # pressing Tab must not create the data directory
    async with open_store(only_reads=True) as (_, store):
        for summary in await store.sessions(limit=_RECENT):
            if summary.name:
                console.print(summary.name)
            console.print(summary.id)
    return exit_codes.OK
