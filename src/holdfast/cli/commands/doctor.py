"""Look at everything Holdfast needs on this machine, and say how to mend what is wrong.

holdfast doctor            a punch list, with a fix for each point
holdfast doctor --json     the same for a program

It tries things for real: each sandbox runs code that attempts to break out, each MCP server is started, each feature of the
kernel is used. No model is asked and nothing is sent. Exit codes: 0 when nothing is bad, 1 when something is.
"""

import argparse
from contextlib import aclosing

from holdfast.cli import exit_codes
from holdfast.cli.doctor import CheckResult, run_checks
from holdfast.cli.std_streams import output_columns
from holdfast.cli.terminal.console import Console, Tone
from holdfast.cli.terminal.wrap import wrap
from holdfast.core import escape_invisible
from holdfast.store import Home

WORKING = "looks at this machine"
_MARKS: dict[str, tuple[str, Tone]] = {
    "ok": ("ok  ", "good"),
    "note": ("note", "ask"),
    "bad": ("BAD ", "bad"),
}
_INDENT, _NARROW_INDENT = 24, 6
_LEAST_WIDTH = 40
"""Of the words beside the name of a part; on a terminal that has less room they stand below it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """In what form."""
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Look, and tell each finding as it is found."""
    console, home = Console(), Home.default()
    found: list[CheckResult] = []
    async with aclosing(run_checks(home)) as findings:
        async for finding in findings:
            found.append(finding)
            if not arguments.json:
                _print_result(console, finding)
    bad = [finding for finding in found if finding.state == "bad"]
    if arguments.json:
        console.json(found)
    elif bad:
        console.show(f"\n{len(bad)} to mend: {', '.join(finding.part for finding in bad)}", "bad", folds=True)
    else:
        console.show("\nnothing is in the way", "good")
    return exit_codes.ERROR if bad else exit_codes.OK


def _print_result(console: Console, finding: CheckResult) -> None:
    mark, tone = _MARKS[finding.state]
    width = output_columns(default=100)
    is_narrow = width < _INDENT + _LEAST_WIDTH
    indent = _NARROW_INDENT if is_narrow else _INDENT
    lines = wrap(escape_invisible(finding.told), width - indent)
    if finding.fix and finding.state != "ok":
        lines += wrap(escape_invisible(f"fix: {finding.fix}"), width - indent)
    head = f"{mark}  {finding.part}"
    if not is_narrow:
        head = f"{head:<{_INDENT - 2}}  {lines.pop(0)}"
    console.show(head, "plain" if finding.state == "ok" else tone)
    for line in lines:
        console.show(f"{'':{indent}}{line}")
