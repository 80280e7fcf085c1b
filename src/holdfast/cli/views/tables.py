"""The plain-text view of the audit log."""

from collections.abc import Iterable, Iterator

from holdfast.cli.views.narrator import describe_call
from holdfast.core import Call
from holdfast.gate import AuditEntry


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
