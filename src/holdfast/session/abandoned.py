"""Abandoned questions: what a foreign agent had asked when its process was killed. Nobody is left to hear an answer."""

from collections.abc import Sequence

from holdfast.core import Clock, Nonconverged, SessionId
from holdfast.core.errors import SessionHeld
from holdfast.core.events import MessagePosted, Recorded, TurnEnded
from holdfast.gate import Escalations
from holdfast.store import Store

REASON = "the program that asked is gone"


async def close_abandoned(store: Store, *, clock: Clock, transport: str) -> int:
    """Withdraw what waits in sessions of a transport that no process holds any more; how many questions that were."""
    closed = 0
    for line in await store.sessions():
        if line.activity != "waiting":
            continue
        last = _last_message(await store.read(line.id))
        if last is not None and last.transport == transport:
            closed += await _close(store, line.id, clock, turn=last.turn)
    return closed


async def _close(store: Store, session: SessionId, clock: Clock, *, turn: int) -> int:
    try:
        journal = await store.open(session)
    except SessionHeld:
        return 0
    try:
        escalations = Escalations(journal, clock=clock)
        waiting = escalations.waiting()
        for escalation in waiting:
            await escalations.expire(escalation.id, REASON)
        await journal.append(TurnEnded(turn=turn, outcome=Nonconverged(reason="cancelled")))
        return len(waiting)
    finally:
        await journal.release()


def _last_message(recorded: Sequence[Recorded]) -> MessagePosted | None:
    return next((each.event for each in reversed(recorded) if isinstance(each.event, MessagePosted)), None)
