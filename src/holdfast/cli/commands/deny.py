"""Deny a call that waits for approval, from any terminal. --reason tells the agent why.

holdfast deny ID --reason "use the staging server"
"""

import argparse

from holdfast.cli.approvals.remote import answer, configure_answer
from holdfast.core import Response

PROGRESS = "sending the answer"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    configure_answer(parser)


async def run(arguments: argparse.Namespace) -> int:
    """Deny the call."""
    return await answer(arguments, Response(verdict="deny", reason=arguments.reason))
