"""Check everything Holdfast needs on this machine, and show how to fix what is wrong.

holdfast doctor              a list of checks, with a fix for each problem
holdfast doctor --json       the same as JSON
holdfast doctor --watch      also measure how long work with large values keeps the event loop busy
holdfast doctor --apparmor   print the AppArmor profile that the command sandbox needs on Ubuntu 24.04 and later

The checks are real: each sandbox runs code that attempts to escape, each MCP server is started, and each kernel feature is used.
No model is called and nothing is sent. Exit codes: 0 when there are no problems, 1 when there are.
"""

import argparse
from contextlib import aclosing

from holdfast.cli import exit_codes
from holdfast.cli.doctor.event_loop import check_event_loop
from holdfast.cli.std_streams import output_columns
from holdfast.cli.terminal.console import Console, Tone
from holdfast.cli.terminal.wrap import wrap
from holdfast.commands import apparmor_profile, apparmor_steps
from holdfast.core import escape_invisible, pluralize
from holdfast.services import CheckResult, run_checks
from holdfast.store import Home

PROGRESS = "checking this machine"
_MARKS: dict[str, tuple[str, Tone]] = {
    "ok": ("ok  ", "good"),
    "note": ("note", "ask"),
    "bad": ("BAD ", "bad"),
}
_INDENT, _NARROW_INDENT = 24, 6
_LEAST_WIDTH = 40
"""The minimum width of the text beside the name of a check. On a narrower terminal the text goes below the name."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    parser.add_argument(
        "--watch",
        action="store_true",
        help="also measure the event loop with large values, in a temporary session",
    )

    parser.add_argument(
        "--apparmor",
        action="store_true",
        help="print a profile that allows user namespaces, and what to do with it",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Run the checks and print each result as it arrives."""
    console, home = Console(), Home.default()
    if arguments.apparmor:
        console.print(apparmor_profile().rstrip())
        for step in apparmor_steps():
            console.say(step, folds=True)
        return exit_codes.OK
    results: list[CheckResult] = []
    extra = {"event loop": check_event_loop} if arguments.watch else {}
    async with aclosing(run_checks(home, extra=extra)) as checks:
        async for result in checks:
            results.append(result)
            if not arguments.json:
                _print_result(console, result)
    bad = [result for result in results if result.state == "bad"]
    if arguments.json:
        console.json(results)
    elif bad:
        console.show(
            f"\n{pluralize(len(bad), 'problem')}: {', '.join(result.part for result in bad)}",
            "bad",
            folds=True,
        )
    else:
        console.show("\nno problems", "good")
    return exit_codes.ERROR if bad else exit_codes.OK


def _print_result(console: Console, result: CheckResult) -> None:
    mark, tone = _MARKS[result.state]
    width = output_columns(default=80)
    is_narrow = width < _INDENT + _LEAST_WIDTH
    indent = _NARROW_INDENT if is_narrow else _INDENT
    lines = wrap(escape_invisible(result.detail), width - indent)
    if result.fix and result.state != "ok":
        lines += wrap(escape_invisible(f"fix: {result.fix}"), width - indent)
    head = f"{mark}  {result.part}"
    if not is_narrow:
        head = f"{head:<{_INDENT - 2}}  {lines.pop(0)}"
    console.show(head, "plain" if result.state == "ok" else tone)
    for line in lines:
        console.show(f"{'':{indent}}{line}")
