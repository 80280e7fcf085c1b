"""Explain an error code or an exit code: what happened, why, and what to do.

holdfast explain session-held      the code in parentheses at the end of an error
holdfast explain 5                 an exit code
holdfast explain exit-codes        all exit codes
holdfast explain                   all error codes, one line each

Exit codes: 0 success, 2 when there is no such code.
"""

import argparse
import textwrap

from holdfast.cli import exit_codes
from holdfast.cli.error_help import ErrorHelp, load_error_help
from holdfast.cli.terminal.console import Console
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput

_WIDTH = 80


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("code", nargs="?", help="an error code, an exit code, or exit-codes")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Print the explanation."""
    console, code = Console(), arguments.code
    if code == "exit-codes" or (code or "").isdigit():
        return _print_exit_codes(console, code, is_json=arguments.json)
    known = load_error_help()
    if code is not None and code not in known:
        raise InvalidInput(f"unknown code {escape_invisible(code)!r}", hint=_suggestion(code, known))
    chosen = known if code is None else {code: known[code]}
    if arguments.json:
        console.json(chosen if code is None else known[code])
    elif code is None:
        width = max(map(len, known))
        for name, explanation in known.items():
            console.print(f"{name:<{width}}  {explanation.what}")
    else:
        for line in explanation_lines(code, known[code]):
            console.print(line)
    return exit_codes.OK


def explanation_lines(code: str, explanation: ErrorHelp) -> list[str]:
    """The explanation as text."""
    paragraphs = (("", explanation.what), ("why  ", explanation.why), ("do   ", explanation.todo))
    lines = [code]
    for label, text in paragraphs:
        lines += textwrap.wrap(f"{label}{text}", _WIDTH, initial_indent="  ", subsequent_indent="       ")
    return lines


def _print_exit_codes(console: Console, code: str, *, is_json: bool) -> int:
    chosen = {
        number: meaning
        for number, meaning in exit_codes.MEANINGS.items()
        if code == "exit-codes" or number == int(code)
    }
    if not chosen:
        raise InvalidInput(
            f"holdfast has no exit code {code}", hint="list them with: holdfast explain exit-codes"
        )
    if is_json:
        console.json(chosen)
    else:
        for number, meaning in chosen.items():
            console.print(f"{number:>3}  {meaning}")
    return exit_codes.OK


def _suggestion(code: str, known: dict[str, ErrorHelp]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(code, known, n=1)
    return f"did you mean {near[0]}?" if near else "list all codes with: holdfast explain"
