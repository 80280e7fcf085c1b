"""What happens to staged changes and to the workspace as a whole."""

from holdfast.core.events.base import Event
from holdfast.core.ids import Principal
from holdfast.core.tools import Change


class ProposalsCommitted(Event, tag="proposals-committed"):
    """Staged changes were made for good, all of these or none."""

    changes: tuple[Change, ...]
    principal: Principal


class ProposalsRejected(Event, tag="proposals-rejected"):
    """Staged changes were dropped."""

    paths: tuple[str, ...]
    principal: Principal


class RestorePointMade(Event, tag="restore-point-made"):
    """The workspace as it was after a turn can be brought back from this blob."""

    turn: int
    manifest: str
    changes: tuple[Change, ...] = ()
    """The files that were created, modified and deleted since the point before, by whomever."""
    more: int = 0
    """How many of them are not listed."""


class SessionRewound(Event, tag="session-rewound"):
    """Everything after `seq` is history that no longer counts: chat, files, staged changes, budget, grants."""

    seq: int
    turn: int
    principal: Principal
