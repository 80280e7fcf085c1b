"""Asking a session for something from a process that does not hold it: kept together with the job that wakes a worker."""

from holdfast.core import SessionId, encode
from holdfast.gate import CancelTurn, PostMessage
from holdfast.store import Store, WorkStore
from holdfast.worker.dispatch import Dispatch
from holdfast.worker.open import open_dispatch


async def post_message(
    store: WorkStore,
    dispatch: Dispatch,
    session: SessionId,
    text: str,
    *,
    transport: str = "command",
    id: str | None = None,
) -> str:
    """Send a message to a session; some worker runs the turn. Returns the id of the message: with it, it is sent once."""
    request = PostMessage(text=text, transport=transport)
    return await store.post_request(
        session, encode(request), id=id, within=lambda transaction: dispatch.post(transaction, session)
    )


async def cancel_turn(
    store: WorkStore, dispatch: Dispatch, session: SessionId, *, transport: str = "command"
) -> str:
    """End the open turn of a session."""
    request = CancelTurn(transport=transport)
    return await store.post_request(
        session, encode(request), within=lambda transaction: dispatch.post(transaction, session)
    )


async def wake(store: WorkStore, dispatch: Dispatch, session: SessionId) -> None:
    """Let a worker look at a session, after an answer or a raised limit was recorded in its journal."""
    await store.in_transaction(lambda transaction: dispatch.post(transaction, session))


async def wake_worker(store: Store, session: SessionId) -> None:
    """The same for any store: one that workers do not share has none to wake."""
    if isinstance(store, WorkStore) and store.address is not None:
        await wake(store, open_dispatch(store.address), session)
