"""Resume a paused session: it accepts turns again.

holdfast resume my-session

To continue the conversation, use: holdfast -r my-session. Exit codes: 1 when there is no such session, a process has it open, or it has already
ended.
"""

import argparse

from holdfast.cli.lifecycle import change_lifecycle, configure_lifecycle

PROGRESS = "opening the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    configure_lifecycle(parser, has_reason=False)


async def run(arguments: argparse.Namespace) -> int:
    """Resume a paused session: it accepts turns again."""
    return await change_lifecycle(arguments, lambda session: session.resume(), "accepts turns again")
