"""Control requests to a session from another process: applied at once if the session is closed, else by its holder."""

import asyncio

from holdfast.core import Limits, SessionId
from holdfast.core.errors import SessionHeld, SessionNotReady
from holdfast.core.events import ControlRequestApplied
from holdfast.gate import (
    AnyControlRequest,
    Budget,
    ControlRequests,
    RaiseBudget,
    RevokeGrant,
    open_tree_budget,
    signal_holder,
)
from holdfast.store import Home, Store

HOLDER_SECONDS = 30.0
"""How long a holder may take to carry out a request before it is withdrawn."""


async def send_control_request(
    home: Home, store: Store, session: SessionId, request: RaiseBudget | RevokeGrant
) -> str:
    """Apply the request, or queue it for the process that holds the session. Returns a message in the second case, else `""`."""
    inbox = ControlRequests(home.control_requests(session))
    inbox.put(request)
    try:
        journal = await store.open(session)
    except SessionHeld as held:
        signal_holder(home.request_signals, session)
        return f"requested; the session is in use ({held}), and its process applies it"
    try:
        tree = await open_tree_budget(journal, home=home, store=store)
        await inbox.apply(journal, Budget(journal, turn_limits=Limits(), tree=tree))
    finally:
        await journal.release()
    return ""


async def request_of_holder(
    home: Home,
    store: Store,
    session: SessionId,
    request: AnyControlRequest,
    *,
    timeout_seconds: float = HOLDER_SECONDS,
) -> ControlRequestApplied:
    """Let the process that holds a session carry out a request, and wait until it has recorded the result.

    Raises SessionNotReady if it does not react; the request is then withdrawn.
    """
    inbox = ControlRequests(home.control_requests(session))
    seen = (await store.summary(session)).events
    with store.watch() as watch:
        name = inbox.put(request)
        signal_holder(home.request_signals, session)
        try:
            async with asyncio.timeout(timeout_seconds):
                while True:
                    for entry in await store.read(session, after=seen):
                        seen = entry.seq
                        if isinstance(entry.event, ControlRequestApplied) and entry.event.request == name:
                            return entry.event
                    await watch.changed()
        except TimeoutError:
            was_ignored = inbox.withdraw(name)
    raise SessionNotReady(
        "the process that holds this session did not react"
        if was_ignored
        else "the process that holds this session has not finished what was requested",
        hint="look at its terminal" if was_ignored else "look at the session in a moment",
    )
