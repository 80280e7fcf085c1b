"""Control requests to a session from another process: applied at once if the session is closed, else by its holder.

Processes of one data directory leave them as files. A store that workers share keeps them, together with the job for a worker.
"""

import asyncio
from collections.abc import Awaitable, Callable

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
KEPT_SECONDS = 3.0
"""How long to wait for a worker to carry out a request that stays posted."""


async def send_control_request(
    home: Home, store: Store, session: SessionId, request: RaiseBudget | RevokeGrant
) -> str:
    """Apply the request, or queue it for the process that holds the session. Returns a message in the second case, else `""`."""
    from holdfast.worker import post_request, shared_by_workers  # most stores have no workers

    if (shared := shared_by_workers(store)) is not None:
        applied = await _applied(
            store, session, lambda: post_request(*shared, session, request), KEPT_SECONDS
        )
        if isinstance(applied, str):
            return "requested; it is kept until a worker applies it"
        if applied.error:
            raise SessionNotReady(applied.error)
        return ""
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
    """Let the process that holds a session, or some worker, carry out a request, and wait until it has recorded the result.

    Raises SessionNotReady if it does not react; the request is then withdrawn.
    """
    from holdfast.worker import post_request, shared_by_workers  # most stores have no workers

    if (shared := shared_by_workers(store)) is not None:
        work_store = shared[0]
        applied = await _applied(
            store, session, lambda: post_request(*shared, session, request), timeout_seconds
        )
        if not isinstance(applied, str):
            return applied
        await work_store.remove_request(applied)
        raise SessionNotReady(
            "no worker has carried this out", hint="list them with: holdfast workers, or start one"
        )
    inbox = ControlRequests(home.control_requests(session))

    async def put() -> str:
        name = inbox.put(request)
        signal_holder(home.request_signals, session)
        return name

    applied = await _applied(store, session, put, timeout_seconds)
    if not isinstance(applied, str):
        return applied
    was_ignored = inbox.withdraw(applied)
    raise SessionNotReady(
        "the process that holds this session did not react"
        if was_ignored
        else "the process that holds this session has not finished what was requested",
        hint="look at its terminal" if was_ignored else "look at the session in a moment",
    )


async def _applied(
    store: Store, session: SessionId, post: Callable[[], Awaitable[str]], timeout_seconds: float
) -> ControlRequestApplied | str:
    """Post a request and wait for the record of its result; its name if there is none in time."""
    seen = (await store.summary(session)).events
    with store.watch() as watch:
        name = await post()
        try:
            async with asyncio.timeout(timeout_seconds):
                while True:
                    for entry in await store.read(session, after=seen):
                        seen = entry.seq
                        if isinstance(entry.event, ControlRequestApplied) and entry.event.request == name:
                            return entry.event
                    await watch.changed()
        except TimeoutError:
            return name
