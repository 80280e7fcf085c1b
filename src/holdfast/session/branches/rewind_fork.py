"""Rewind and fork: return a session to the end of a turn, or start a new session from there.

Messages, staged changes, budget and grants follow from the journal; a rewind restores the files as well. Effects outside the
workspace (mail, pushes, other machines) cannot be undone; the plan names them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import msgspec

from holdfast.core import PERSON, Call, Change, SessionId, Value, digest
from holdfast.core.errors import CommitConflict, InvalidInput
from holdfast.core.events import (
    BudgetRaised,
    CallIntended,
    CallSettled,
    EscalationExpired,
    Event,
    GrantRevoked,
    HostJudged,
    Parent,
    ProposalsCommitted,
    RecordedEvent,
    RestorePointMade,
    SessionOpened,
    TurnEnded,
)
from holdfast.core.projection import (
    ReplayedHistory,
    imported_limits,
    imported_through,
    signer_after,
    without_rewound,
)
from holdfast.session.status import Status

_REVERSIBLE_GROUPS = ("world", "session", "llm", "person")


class RewindPlan(Value):
    """What a rewind to a turn would do."""

    turn: int
    seq: int
    manifest: str
    changes: tuple[Change, ...] = ()
    """Changes to files."""
    left: tuple[str, ...] = ()
    """Files that stay unchanged because their content was not saved."""
    stays: tuple[str, ...] = ()
    """Calls since then whose effects cannot be undone."""
    by_others: tuple[str, ...] = ()
    """For an undo: files that changed since then other than by the turn, for example in an editor. Those changes go as well."""
    kept: tuple[str, ...] = ()
    """For an undo: files that were committed since then. Older turns changed them, so they stay committed."""

    def check(self, shown: str, *others: "RewindPlan") -> None:
        """Raise CommitConflict unless `shown` is the digest of this plan, or of another wording of it."""
        if shown not in {digest(each) for each in (self, *others)}:
            raise CommitConflict(
                "what the rewind would change is not what was shown; nothing was rewound",
                hint="look at the plan again",
            )


class ShownRewind(RewindPlan):
    """A plan as a person or a program looks at it, with the digest that goes along with the rewind."""

    digest: str

    @classmethod
    def of(cls, plan: RewindPlan) -> Self:
        """The plan with its digest."""
        return cls(**msgspec.structs.asdict(plan), digest=digest(plan))


def plan_rewind(
    recorded: Iterable[RecordedEvent], turn: int, *, is_newest: bool = False, has_open_ports: bool = True
) -> RewindPlan:
    """Where a turn ended and which later effects remain. Raises InvalidInput if the turn has no restore point.

    With `is_newest` from its newest restore point, which includes what was committed after the turn. With `has_open_ports`
    programs may have reached servers of this machine, of which there is no record.
    """
    counted = without_rewound(recorded)
    # A turn that resumed after its budget was raised has ended more than once.
    ends = [e.seq for e in counted if isinstance(e.event, TurnEnded) and e.event.turn == turn]
    ended = max(ends, default=0)
    made = [e for e in counted if isinstance(e.event, RestorePointMade) and e.event.turn == turn]
    points = [e for e in made if e.seq > ended]
    point = points[-1 if is_newest else 0] if points else None
    if point is None or not isinstance(point.event, RestorePointMade):
        raise InvalidInput(
            f"turn {turn} has no restore point",
            hint="holdfast rewind SESSION, or /rewind, lists the turns that have one",
        )
    settled = {
        e.event.call for e in counted if isinstance(e.event, CallSettled) and e.event.status != "error"
    }
    reached = {e.event.call for e in counted if isinstance(e.event, HostJudged) and e.event.verdict != "deny"}
    stays = tuple(
        f"{e.event.call.id} {e.event.call.operation}"
        for e in counted
        if e.seq > point.seq
        and isinstance(e.event, CallIntended)
        and e.event.call.id in settled
        and not _is_reversible(e.event.call, has_network=has_open_ports or e.event.call.id in reached)
    )
    return RewindPlan(turn=turn, seq=point.seq, manifest=point.event.manifest, stays=stays)


def changed_by_others(recorded: Iterable[RecordedEvent], plan: RewindPlan) -> tuple[str, ...]:
    """Files that the plan would change and that are not as the session found and left them: someone else changed them too."""
    found: dict[str, str | None] = {}
    left: dict[str, str | None] = {}
    for entry in without_rewound(recorded):
        if entry.seq <= plan.seq or not isinstance(entry.event, CallSettled | ProposalsCommitted):
            continue
        for change in entry.event.changes:
            if not (change.is_staged and isinstance(entry.event, CallSettled)):
                found.setdefault(change.path, change.before)
                left[change.path] = change.after
    return tuple(
        change.path
        for change in plan.changes
        if change.path not in found
        or (found[change.path], left[change.path]) != (change.after, change.before)
    )


def _is_reversible(call: Call, *, has_network: bool) -> bool:
    """Whether a rewind undoes all that a call did. A program in the sandbox acts outside it only through the network."""
    group = call.operation.partition(".")[0]
    return group in _REVERSIBLE_GROUPS or (group == "shell" and not has_network)


def last_point(recorded: Iterable[RecordedEvent]) -> RecordedEvent | None:
    """The newest restore point that was not rewound."""
    points = [entry for entry in without_rewound(recorded) if isinstance(entry.event, RestorePointMade)]
    return points[-1] if points else None


def plan_fork(
    parent: SessionId, recorded: Sequence[RecordedEvent], at: int | None
) -> tuple[RewindPlan, SessionOpened]:
    """Where the fork starts and its opening event: its parent's limits at that point, and its current policy and model."""
    counted = without_rewound(recorded)
    turns = [entry.event.turn for entry in counted if isinstance(entry.event, TurnEnded)]
    if not turns and at is None:
        raise InvalidInput("this session has no finished turn to fork", hint="send it a message first")
    plan = plan_rewind(recorded, at if at is not None else turns[-1], is_newest=at is None)
    return plan, fork_opening(parent, recorded, plan.seq)


def fork_opening(parent: SessionId, recorded: Sequence[RecordedEvent], seq: int) -> SessionOpened:
    """The opening event of a fork that shares its parent's events up to and including `seq`."""
    opened = [entry.event for entry in recorded if isinstance(entry.event, SessionOpened)][-1]
    status, imported = Status(ReplayedHistory(recorded)), imported_through(recorded)
    given = imported_limits(recorded)
    limits = opened.limits if given is None else given
    for entry in without_rewound(recorded):
        if (
            (given is None or entry.seq > imported)
            and entry.seq <= seq
            and isinstance(entry.event, BudgetRaised)
        ):
            limits = entry.event.limits
    return msgspec.structs.replace(
        opened,
        principal=PERSON if imported else opened.principal,
        queue="" if imported else opened.queue,
        policy=status.policy,
        model=status.model,
        sandbox=status.sandbox,
        limits=limits,
        workspace="",
        name=None,
        parent=Parent(session=parent, seq=seq),
        taken_back=tuple(_taken_back(entry.event for entry in recorded if entry.seq > seq)),
        is_imported=imported > seq,  # else the shared part says itself where the file ended
        signer=signer_after(recorded, seq) if imported > seq else "",
    )


def _taken_back(since: Iterable[Event]) -> Iterator[str]:
    """What a person revoked after the point: it stays revoked in the fork."""
    for event in since:
        match event:
            case GrantRevoked():
                yield event.grant
            case EscalationExpired():
                yield event.escalation
            case SessionOpened():
                yield from event.taken_back
            case _:
                pass
