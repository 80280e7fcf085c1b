"""Plain-text views of the audit log and of staged changes."""

from collections.abc import Iterable, Iterator

from holdfast.cli.terminal.console import Tone
from holdfast.cli.views.narrator import describe_call
from holdfast.core import Call, escape_invisible
from holdfast.gate import AuditEntry
from holdfast.world import Proposal


def audit_table(entries: Iterable[AuditEntry], width: int = 96) -> Iterator[str]:
    """One line per call: id, decision, result, operation, and who approved it."""
    yield f"{'call':<6}{'decision':<10}{'result':<9}{'ms':>7}  what"
    for entry in entries:
        what = describe_call(
            Call(id=entry.call, operation=entry.operation, arguments=entry.arguments), width=36
        )
        approval = ""
        if entry.approver is not None and entry.response is not None:
            approval = f"  [{entry.response.verdict} by {entry.approver}]"
        elif entry.grant is not None:
            approval = f"  [by grant {entry.grant}]"
        took = f"{entry.duration_ms:.1f}" if entry.result not in ("refused", "waiting") else "-"
        line = f"{entry.call:<6}{entry.decision.verdict:<10}{entry.result:<9}{took:>7}  {what}"
        # The approval is never cut: who decided matters more than the end of the call.
        room = width - len(approval)
        yield (line if len(line) <= room else line[: room - 3] + "...") + approval


def proposal_lines(proposal: Proposal) -> Iterator[tuple[str, Tone]]:
    """The diff of a proposal, line by line with its tone; nothing in it can control the terminal."""
    if proposal.runs_when is not None:
        yield f"{escape_invisible(proposal.path)}: this runs when you {proposal.runs_when}", "ask"
    if proposal.asks:
        yield f"{escape_invisible(proposal.path)}: {_asks(proposal)}", "ask"
    if proposal.renamed_from is not None:
        yield (
            f"{escape_invisible(proposal.path)} renamed from {escape_invisible(proposal.renamed_from)}",
            "strong",
        )
    for line in escape_invisible(proposal.diff).splitlines():
        yield line, _tone(line)


def _asks(proposal: Proposal) -> str:
    return f"a program changed it, and it needs your approval by name: {escape_invisible(proposal.asks)}"


def _tone(line: str) -> Tone:
    if line.startswith(("+++", "---", "@@", "diff ")):
        return "strong"
    return "good" if line.startswith("+") else "bad" if line.startswith("-") else "plain"
