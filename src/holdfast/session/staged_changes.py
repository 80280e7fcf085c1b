"""Staged changes that are still open, projected from the journal: staged less committed or rejected."""

import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.core import Change, SessionId
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallSettled,
    ForkChangesStaged,
    ProposalsCommitted,
    ProposalsRejected,
    ProposalsSplit,
    RecordedEvent,
)
from holdfast.core.projection import without_rewound
from holdfast.session.shared.travelling_folder import readable_folder
from holdfast.store import Home, Journal, Store
from holdfast.world import FolderWorld, StagedWorld


def staged_changes(recorded: Iterable[RecordedEvent]) -> list[Change]:
    """Staged changes in the order they were made; the overlay of a resumed session is rebuilt from them."""
    return _replay(recorded).staged


class _Replayed(NamedTuple):
    staged: list[Change]
    split: dict[str, tuple[Change, Change | None]]
    """By path: the part of a split that is to be committed, and what then stays staged."""


def _replay(recorded: Iterable[RecordedEvent]) -> _Replayed:
    staged: list[Change] = []
    split: dict[str, tuple[Change, Change | None]] = {}
    for entry in without_rewound(recorded):
        match event := entry.event:
            case CallSettled() | ForkChangesStaged():
                new = [change for change in event.changes if change.is_staged]
                staged += new
                for change in new:
                    split.pop(change.path, None)
            case ProposalsSplit():
                rests = {change.path: change for change in event.rests}
                split |= {part.path: (part, rests.pop(part.path, None)) for part in event.parts}
                staged = [change for change in staged if change.path not in rests]
                staged += rests.values()
            case ProposalsCommitted():
                gone = {change.path: change for change in event.changes}
                staged = [change for change in staged if change.path not in gone]
                for path, change in gone.items():
                    part, rest = split.pop(path, (None, None))
                    if part is not None and rest is not None and part.after == change.after:
                        staged.append(rest)
            case ProposalsRejected():
                staged = [change for change in staged if change.path not in event.paths]
            case _:
                pass
    return _Replayed(staged, split)


def committed_since(recorded: Sequence[RecordedEvent], seq: int) -> tuple[str, ...]:
    """Files that were staged at a point, and committed as they were later."""
    before = {
        change.path: change for change in staged_changes(entry for entry in recorded if entry.seq <= seq)
    }
    committed = {
        change.path: change
        for entry in without_rewound(recorded)
        if entry.seq > seq and isinstance(entry.event, ProposalsCommitted)
        for change in entry.event.changes
    }
    return tuple(
        path
        for path, change in sorted(committed.items())
        if path in before and before[path].after == change.after
    )


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


async def view_staged(home: Home, store: Store, session: SessionId) -> StagedWorld:
    """The workspace of a session with what is staged over it, to look at: without a lease, and nothing is written."""
    recorded = await store.read(session)
    changes = staged_changes(recorded)
    contents = {
        change.after: await store.blob(change.after) for change in changes if change.after is not None
    }
    staged = StagedWorld(FolderWorld(await readable_folder(home, store, session)))
    staged.restage(changes, contents.__getitem__)
    return staged


def already_committed(staged: StagedWorld, recorded: Iterable[RecordedEvent]) -> tuple[Change, ...]:
    """Staged changes that the base already has: committed, but not recorded before the process died."""
    replayed = _replay(recorded)
    latest = {change.path: change for change in replayed.staged}
    latest |= {path: part for path, (part, _) in replayed.split.items() if staged.is_committed(part)}
    return tuple(change for _, change in sorted(latest.items()) if staged.is_committed(change))
