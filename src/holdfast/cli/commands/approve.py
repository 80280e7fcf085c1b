"""Say yes, once, to a call that waits for you, from any terminal.

holdfast waiting           what waits
holdfast approve           the only one that waits
holdfast approve ID
"""

import argparse

from holdfast.cli.answering import answer, configure_answer
from holdfast.core import Response

WORKING = "tells it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which call."""
    configure_answer(parser)


async def run(arguments: argparse.Namespace) -> int:
    """Record the yes."""
    return await answer(arguments, Response(verdict="approve", reason=arguments.reason))
