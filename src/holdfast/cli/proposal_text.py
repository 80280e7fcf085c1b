"""A proposal as a person reads it: where the content came from, then the diff, line by line with its tone."""

from collections.abc import Iterator

from holdfast.cli.console import Tone, visible
from holdfast.world import Proposal


def proposal_lines(proposal: Proposal) -> Iterator[tuple[str, Tone]]:
    """Each line with its tone; nothing in it can steer the terminal."""
    if proposal.renamed_from is not None:
        yield f"{visible(proposal.path)} renamed from {visible(proposal.renamed_from)}", "strong"
    for line in visible(proposal.diff).splitlines():
        yield line, _tone(line)


def _tone(line: str) -> Tone:
    if line.startswith(("+++", "---", "@@", "diff ")):
        return "strong"
    return "good" if line.startswith("+") else "bad" if line.startswith("-") else "plain"
