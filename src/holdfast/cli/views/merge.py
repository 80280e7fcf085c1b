"""The plain-text view of a merge: what is left out, and conflicts."""

from collections.abc import Iterator

from holdfast.cli.terminal.console import Tone
from holdfast.core import escape_invisible
from holdfast.session import MergePlan


def merge_lines(plan: MergePlan) -> Iterator[tuple[str, Tone]]:
    """What a merge leaves out and what conflicts, line by line with its tone."""
    for path in plan.left:
        yield (
            f"not merged, because it is not an ordinary file or leads outside: {escape_invisible(path)}",
            "ask",
        )
    for conflict in plan.conflicts:
        yield f"conflict: {escape_invisible(conflict.path)}: {escape_invisible(conflict.reason)}", "bad"
    if not plan.proposals and not plan.conflicts:
        yield "the fork has nothing that its parent lacks", "plain"
