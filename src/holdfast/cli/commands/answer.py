"""Answer a question of the agent, from any terminal.

holdfast waiting                          the questions and calls that wait for you
holdfast answer ID "the blue one"
holdfast answer "the blue one"            the only question that waits
"""

import argparse

from holdfast.cli.approvals.remote import answer, configure_session_choice
from holdfast.cli.shared_store import add_store_option
from holdfast.core import Response
from holdfast.core.errors import InvalidInput

PROGRESS = "sending the answer"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "words", nargs="+", metavar="[ID] TEXT", help="the id of the question, and the answer"
    )
    configure_session_choice(parser)
    add_store_option(parser)
    # argparse would repeat the two words.
    parser.usage = parser.format_usage().removeprefix("usage: ").strip().replace(" [[ID] TEXT ...]", "")


async def run(arguments: argparse.Namespace) -> int:
    """Answer the question."""
    *id, text = arguments.words
    if len(id) > 1:
        raise InvalidInput(
            "the answer is more than one word", hint='put it in quotes: holdfast answer ID "TEXT"'
        )
    if not text.strip():
        raise InvalidInput("the answer is empty", hint="deny the question with: holdfast deny ID")
    arguments.escalation, arguments.folder, arguments.whole = (id or [None])[0], None, True
    return await answer(arguments, Response(verdict="approve", reason=text), is_text=True)
