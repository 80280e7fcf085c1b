"""Events of files: staged changes, restore points and rewinds."""

from holdfast.core.events.base import Event
from holdfast.core.ids import PERSON, Principal, SessionId
from holdfast.core.tools import Change


class ProposalsCommitted(Event, tag="proposals-committed"):
    """Staged changes were committed, all or none."""

    changes: tuple[Change, ...]
    principal: Principal


class ProposalsRejected(Event, tag="proposals-rejected"):
    """Staged changes were discarded."""

    paths: tuple[str, ...]
    principal: Principal


class ProposalsSplit(Event, tag="proposals-split"):
    """A person chose among the hunks of staged changes.

    The parts are committed next. After that, the rests are what stays staged; a rest without a part replaces its change at once.
    """

    parts: tuple[Change, ...] = ()
    rests: tuple[Change, ...] = ()
    principal: Principal = PERSON


class ForkChangesStaged(Event, tag="fork-changes-staged"):
    """The changes of a fork were staged in its parent, where they are committed next."""

    fork: SessionId
    changes: tuple[Change, ...]
    principal: Principal


class ForkMerged(Event, tag="fork-merged"):
    """The changes of this fork were committed in its parent."""

    parent: SessionId
    changes: tuple[Change, ...]
    principal: Principal


class RestorePointMade(Event, tag="restore-point-made"):
    """The workspace can be restored to its state after this turn; `manifest` names the blob."""

    turn: int
    manifest: str
    changes: tuple[Change, ...] = ()
    """The files that anyone created, modified or deleted since the previous restore point."""
    more: int = 0
    """How many more changes there are than listed."""


class SessionRewound(Event, tag="session-rewound"):
    """Everything after `seq` has no effect any more: messages, files, staged changes, budget, grants."""

    seq: int
    turn: int
    principal: Principal
