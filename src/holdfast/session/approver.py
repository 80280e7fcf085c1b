"""The approver: asks a person about an escalation, in parallel with every other way to answer it."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core import PERSON, Escalation, Response
from holdfast.core.errors import EscalationUnknown
from holdfast.gate import Gate

Approver = Callable[[Escalation], Awaitable[Response | None]]
"""Asks about one escalation. None means no answer; another transport may still answer."""


async def ask_approver(approver: Approver, gate: Gate, *, transport: str) -> None:
    """Ask about each open escalation. The first answer counts, here or through another transport."""
    for escalation in gate.escalations.waiting():
        local = asyncio.ensure_future(approver(await gate.whole_escalation(escalation)))
        settled = asyncio.ensure_future(gate.wait(escalation.id))
        try:
            await asyncio.wait({local, settled}, return_when=asyncio.FIRST_COMPLETED)
            response = local.result() if local.done() and not settled.done() else None
            if response is not None:
                await gate.resolve(escalation.id, response, principal=PERSON, transport=transport)
            await settled
        except EscalationUnknown:
            pass  # answered elsewhere at the same moment
        finally:
            local.cancel()
            settled.cancel()
            await asyncio.gather(local, settled, return_exceptions=True)
