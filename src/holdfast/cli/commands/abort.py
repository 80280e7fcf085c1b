"""End a session for good and drop what it has staged.

holdfast abort my-session

An open turn is cancelled. The journal and the files stay until you delete the session. Exit codes: 1 when there is no such session, a process has it open, or it has already
ended.
"""

import argparse

from holdfast.cli.lifecycle import change_lifecycle, configure_lifecycle

PROGRESS = "opening the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    configure_lifecycle(parser, has_reason=True)


async def run(arguments: argparse.Namespace) -> int:
    """End a session for good and drop what it has staged."""
    return await change_lifecycle(
        arguments,
        lambda session: session.abort(arguments.reason),
        "is aborted; its staged changes were dropped",
    )
