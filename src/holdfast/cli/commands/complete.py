"""End a session for good, as completed.

holdfast complete my-session

Staged changes can still be committed. The journal and the files stay until you delete the session. Exit codes: 1 when there is no such session, a process has it open, or it has already
ended.
"""

import argparse

from holdfast.cli.lifecycle import change_lifecycle, configure_lifecycle

PROGRESS = "opening the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    configure_lifecycle(parser, has_reason=True)


async def run(arguments: argparse.Namespace) -> int:
    """End a session for good, as completed."""
    return await change_lifecycle(
        arguments, lambda session: session.complete(arguments.reason), "is completed"
    )
