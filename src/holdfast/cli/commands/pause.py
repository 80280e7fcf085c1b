"""Pause a session: it takes no turns until it is resumed.

holdfast pause my-session

What waits keeps waiting, and staged changes stay. Exit codes: 1 when there is no such session, a process has it open, or it has already
ended.
"""

import argparse

from holdfast.cli.lifecycle import change_lifecycle, configure_lifecycle

PROGRESS = "opening the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    configure_lifecycle(parser, has_reason=False)


async def run(arguments: argparse.Namespace) -> int:
    """Pause a session: it takes no turns until it is resumed."""
    return await change_lifecycle(
        arguments, lambda session: session.pause(), "is paused; holdfast resume makes it accept turns again"
    )
