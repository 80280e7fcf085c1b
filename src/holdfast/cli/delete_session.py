"""Deleting a session with everything that belongs to it: what was typed in it, and the queue of a session of a team."""

from contextlib import suppress

from holdfast.cli.input_history import forget_typed, typed_in
from holdfast.core import SessionId
from holdfast.core.errors import SessionNotFound
from holdfast.store import Home, Store


async def delete_session(store: Store, session: SessionId, *, home: Home | None = None) -> None:
    """Delete a session permanently. Raises SessionNotFound, SessionHeld."""
    home = home or Home.default()
    typed = await typed_in(home, store, [session])
    await store.delete(session)
    forget_typed(home, typed)
    if not session.startswith("team-"):
        return
    from holdfast.teams import message_queue_of  # slow to load, and seldom needed

    queue = message_queue_of(session)
    if queue is not None:
        with suppress(SessionNotFound):
            await store.delete(queue)
