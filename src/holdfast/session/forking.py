"""Forking: a new session that goes on from the end of a turn of another."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from holdfast.core import SessionId
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    AnyEvent,
    BudgetRaised,
    EscalationExpired,
    GrantRevoked,
    Parent,
    Recorded,
    SessionOpened,
    TurnEnded,
)
from holdfast.core.fold import Reading, effective
from holdfast.session.rewinding import RewindPlan, plan_rewind
from holdfast.session.status import Status


def plan_fork(
    parent: SessionId, recorded: Sequence[Recorded], at: int | None
) -> tuple[RewindPlan, SessionOpened]:
    """Where the fork begins, and how it is opened: with the limits its parent had there, and the policy and model it has now."""
    counted = effective(recorded)
    turns = [entry.event.turn for entry in counted if isinstance(entry.event, TurnEnded)]
    if not turns and at is None:
        raise InvalidInput("this session has no finished turn to go on from")
    plan = plan_rewind(recorded, at if at is not None else turns[-1])
    opened = [entry.event for entry in recorded if isinstance(entry.event, SessionOpened)][-1]
    limits = opened.limits
    for entry in counted:
        if entry.seq <= plan.seq and isinstance(entry.event, BudgetRaised):
            limits = entry.event.limits
    status = Status(Reading(recorded))
    return plan, msgspec.structs.replace(
        opened,
        policy=status.policy,
        model=status.model,
        limits=limits,
        workspace="",
        name=None,
        parent=Parent(session=parent, seq=plan.seq),
        taken_back=tuple(_taken_back(entry.event for entry in recorded if entry.seq > plan.seq)),
    )


def _taken_back(since: Iterable[AnyEvent]) -> Iterator[str]:
    """What a person took back after the point: it stays taken back in a fork that begins before."""
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
