"""Which staged changes still wait, folded from the journal: what was staged less what was committed or rejected."""

from collections.abc import Iterable

from holdfast.core import Change
from holdfast.core.events import CallSettled, ProposalsCommitted, ProposalsRejected, Recorded
from holdfast.core.fold import effective


def staged_changes(recorded: Iterable[Recorded]) -> list[Change]:
    """Staged changes in the order they were made; the overlay of a resumed session is built from them."""
    staged: list[Change] = []
    for entry in effective(recorded):
        match event := entry.event:
            case CallSettled():
                staged += [change for change in event.changes if change.is_staged]
            case ProposalsCommitted():
                gone = {change.path for change in event.changes}
                staged = [change for change in staged if change.path not in gone]
            case ProposalsRejected():
                staged = [change for change in staged if change.path not in event.paths]
            case _:
                pass
    return staged
