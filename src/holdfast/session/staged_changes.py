"""Staged changes that are still open, projected from the journal: staged less committed or rejected."""

import shlex
from collections.abc import Iterable, Sequence

from holdfast.core import Change
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallSettled,
    ForkChangesStaged,
    ProposalsCommitted,
    ProposalsRejected,
    RecordedEvent,
)
from holdfast.core.projection import without_rewound
from holdfast.store import Journal, Store
from holdfast.world import StagedWorld


def staged_changes(recorded: Iterable[RecordedEvent]) -> list[Change]:
    """Staged changes in the order they were made; the overlay of a resumed session is rebuilt from them."""
    staged: list[Change] = []
    for entry in without_rewound(recorded):
        match event := entry.event:
            case CallSettled() | ForkChangesStaged():
                staged += [change for change in event.changes if change.is_staged]
            case ProposalsCommitted():
                gone = {change.path for change in event.changes}
                staged = [change for change in staged if change.path not in gone]
            case ProposalsRejected():
                staged = [change for change in staged if change.path not in event.paths]
            case _:
                pass
    return staged


def approved_paths(staged: StagedWorld, paths: Sequence[str], *, approve: bool) -> Sequence[str] | None:
    """The paths to commit: a change that asks must be named itself. None is all. Raises InvalidInput if nothing is left."""
    asking = staged.asking()
    if approve or not asking:
        return tuple(paths) or None
    named = {staged.resolve(path) for path in paths}
    chosen = staged.chosen(paths or None)
    approved = [path for path in chosen if path not in asking or path in named]
    if not approved:
        listed = ", ".join(path for path in chosen if path in asking)
        raise InvalidInput(
            f"these changes need your approval by name: {listed}",
            hint=f"look at them with /diff, then /commit {shlex.quote(next(iter(asking)))}",
        )
    return approved


async def restage(staged: StagedWorld, journal: Journal, store: Store) -> None:
    """Rebuild the overlay from the journal."""
    changes = staged_changes(journal.recorded)
    contents = {
        change.after: await store.blob(change.after) for change in changes if change.after is not None
    }
    staged.restage(changes, contents.__getitem__)


def already_committed(staged: StagedWorld, changes: Iterable[Change]) -> tuple[Change, ...]:
    """Staged changes that the base already has: committed, but not recorded before the process died."""
    latest = {change.path: change for change in changes}
    return tuple(change for _, change in sorted(latest.items()) if staged.is_committed(change))
