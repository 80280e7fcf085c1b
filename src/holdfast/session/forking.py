"""Forking: a new session that goes on from the end of a turn of another."""

from collections.abc import Sequence

import msgspec

from holdfast.core import SessionId
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    BudgetRaised,
    EscalationExpired,
    GrantRevoked,
    Parent,
    Recorded,
    SessionOpened,
    SessionReconfigured,
    TurnEnded,
)
from holdfast.core.fold import effective
from holdfast.session.rewinding import RewindPlan, plan_rewind


def plan_fork(
    parent: SessionId, recorded: Sequence[Recorded], at: int | None
) -> tuple[RewindPlan, SessionOpened]:
    """Where the fork begins, and how it is opened: with the policy, model and limits its parent had there."""
    counted = effective(recorded)
    turns = [entry.event.turn for entry in counted if isinstance(entry.event, TurnEnded)]
    if not turns and at is None:
        raise InvalidInput("this session has no finished turn to go on from")
    plan = plan_rewind(recorded, at if at is not None else turns[-1])
    opened = [entry.event for entry in recorded if isinstance(entry.event, SessionOpened)][-1]
    for entry in counted:
        if entry.seq > plan.seq:
            break
        match event := entry.event:
            case SessionReconfigured():
                opened = msgspec.structs.replace(
                    opened, policy=event.policy or opened.policy, model=event.model or opened.model
                )
            case BudgetRaised():
                opened = msgspec.structs.replace(opened, limits=event.limits)
            case _:
                pass
    parting = Parent(session=parent, seq=plan.seq)
    return plan, msgspec.structs.replace(opened, workspace="", name=None, parent=parting)


def taken_back(recorded: Sequence[Recorded], plan: RewindPlan) -> list[GrantRevoked | EscalationExpired]:
    """What a person took back after the point: it stays taken back in a fork that begins before."""
    since = (entry.event for entry in recorded if entry.seq > plan.seq)
    return [event for event in since if isinstance(event, GrantRevoked | EscalationExpired)]
