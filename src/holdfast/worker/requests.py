"""Asking a session for something from a process that does not hold it: kept together with the job that wakes a worker."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core import PERSON, Principal, SessionId, encode
from holdfast.gate import AnyControlRequest, CancelTurn, PostMessage
from holdfast.store import Store, WorkStore
from holdfast.worker.dispatch import Dispatch
from holdfast.worker.open import open_dispatch


async def post_request(
    store: WorkStore,
    dispatch: Dispatch,
    session: SessionId,
    request: AnyControlRequest,
    *,
    id: str | None = None,
) -> str:
    """Ask a session for something: some worker, or the process that holds it, does it. Returns the id of the request."""
    queue = (await store.summary(session)).queue
    return await store.post_request(
        session, encode(request), id=id, post_jobs=_PostJobs(dispatch=dispatch, queue=queue)
    )


async def post_message(
    store: WorkStore,
    dispatch: Dispatch,
    session: SessionId,
    text: str,
    *,
    principal: Principal = PERSON,
    transport: str = "command",
    id: str | None = None,
) -> str:
    """Send a message to a session; some worker runs the turn. Returns the id of the message: with it, it is sent once."""
    message = PostMessage(text=text, principal=principal, transport=transport)
    return await post_request(store, dispatch, session, message, id=id)


async def cancel_turn(
    store: WorkStore, dispatch: Dispatch, session: SessionId, *, transport: str = "command"
) -> str:
    """End the open turn of a session."""
    return await post_request(store, dispatch, session, CancelTurn(transport=transport))


def shared_by_workers(store: Store) -> tuple[WorkStore, Dispatch] | None:
    """The store and the queue of its workers; None if only processes of this machine use it."""
    if isinstance(store, WorkStore) and store.address is not None:
        return store, open_dispatch(store.address, engine=store.engine)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _PostJobs:
    """Posts jobs of one queue. Equal for the requests of all sessions, so those that arrive together share a statement."""

    dispatch: Dispatch
    queue: str

    async def __call__(self, transaction: object, sessions: Sequence[SessionId]) -> None:
        await self.dispatch.post(transaction, sessions, queue=self.queue)
