"""Who puts an escalation before a person, and the race of those who may answer it."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core import PERSON, Escalation, Response
from holdfast.core.errors import EscalationUnknown
from holdfast.gate import Gate

Approver = Callable[[Escalation], Awaitable[Response | None]]
"""Asks about one escalation. None means that this one has nothing to say; others may still answer."""


async def ask_person(approver: Approver, gate: Gate, *, transport: str) -> None:
    """Put what waits before the person; whoever answers first, here or elsewhere, has answered."""
    for escalation in gate.escalations.waiting():
        here = asyncio.ensure_future(approver(escalation))
        anywhere = asyncio.ensure_future(gate.wait(escalation.id))
        try:
            await asyncio.wait({here, anywhere}, return_when=asyncio.FIRST_COMPLETED)
            response = here.result() if here.done() and not anywhere.done() else None
            if response is not None:
                await gate.resolve(escalation.id, response, principal=PERSON, transport=transport)
            await anywhere
        except EscalationUnknown:
            pass  # answered elsewhere in the same moment
        finally:
            here.cancel()
            anywhere.cancel()
            await asyncio.gather(here, anywhere, return_exceptions=True)
