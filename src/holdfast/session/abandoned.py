"""Abandoned questions: what a foreign agent had asked when its process was killed. Nobody is left to hear an answer."""

from collections.abc import Sequence

from holdfast.core import Clock, SessionId
from holdfast.core.errors import SessionHeld
from holdfast.core.events import MessagePosted, Recorded
from holdfast.gate import Escalations
from holdfast.store import Store

REASON = "the program that asked is gone"


async def close_abandoned(store: Store, *, clock: Clock, transport: str) -> int:
    """Withdraw what waits in sessions of a transport that no process holds any more; how many questions that were."""
    closed = 0
    for line in await store.sessions():
        if line.activity == "waiting" and _transport(await store.read(line.id)) == transport:
            closed += await _close(store, line.id, clock)
    return closed


async def _close(store: Store, session: SessionId, clock: Clock) -> int:
    try:
        journal = await store.open(session)
    except SessionHeld:
        return 0
    try:
        escalations = Escalations(journal, clock=clock)
        waiting = escalations.waiting()
        for escalation in waiting:
            await escalations.expire(escalation.id, REASON)
        return len(waiting)
    finally:
        await journal.release()


def _transport(recorded: Sequence[Recorded]) -> str:
    """How the last message came."""
    posted = (entry.event for entry in reversed(recorded) if isinstance(entry.event, MessagePosted))
    last = next(posted, None)
    return last.transport if last is not None else ""
