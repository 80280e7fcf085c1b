"""Say no to a call that waits for you, from any terminal; --reason tells the agent why.

holdfast deny ID --reason "use the staging server"
"""

import argparse

from holdfast.cli.approvals.remote import answer, configure_answer
from holdfast.core import Response

WORKING = "tells it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which call."""
    configure_answer(parser)


async def run(arguments: argparse.Namespace) -> int:
    """Record the no."""
    return await answer(arguments, Response(verdict="deny", reason=arguments.reason))
