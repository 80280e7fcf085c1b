"""Who runs the sessions that a browser starts or continues: this server, or workers that share the store with it."""

from typing import Protocol

from holdfast.app import Runtime
from holdfast.core import PERSON, Principal, SessionId, Value
from holdfast.session import Session
from holdfast.store import WorkStore
from holdfast.worker import Dispatch, post_message

TRANSPORT = "web"


class SessionStart(Value, forbid_unknown_fields=True):
    """A session to start, and its first message."""

    text: str
    folder: str | None = None
    model: str | None = None
    policy: str | None = None


class SessionHost(Protocol):
    """Runs sessions for the routes of the web server."""

    is_remote: bool
    """Whether other processes run the sessions, also those that nobody holds now."""

    def get(self, session: SessionId) -> Session | None:
        """The session, if it is open here."""
        ...

    async def start(self, wanted: SessionStart, *, principal: Principal = PERSON) -> SessionId:
        """Start a session with a message."""
        ...

    async def send(self, session: SessionId, text: str, *, principal: Principal = PERSON) -> None:
        """Send a message to a session. Raises SessionHeld if it must run here and another process holds it."""
        ...

    async def advance(self, session: SessionId) -> None:
        """Continue a turn that waited, in a session that no process holds. Raises HoldfastError if it cannot."""
        ...

    async def close(self) -> None:
        """Release what is open here; turns can be resumed."""
        ...


class WorkerSessions:
    """Workers run the sessions; this process only posts to them."""

    is_remote = True

    def __init__(self, runtime: Runtime, store: WorkStore, dispatch: Dispatch) -> None:
        self._runtime = runtime
        self._store = store
        self._dispatch = dispatch

    def get(self, session: SessionId) -> Session | None:
        return None

    async def start(self, wanted: SessionStart, *, principal: Principal = PERSON) -> SessionId:
        # Without a chosen model, the worker's own applies: this machine may have no key.
        session = await self._runtime.create(
            workspace=wanted.folder or None,
            model=wanted.model or None,
            policy=wanted.policy or None,
            principal=principal,
            needs_model=bool(wanted.model),
        )
        await session.close()
        await self.send(session.id, wanted.text, principal=principal)
        return session.id

    async def send(self, session: SessionId, text: str, *, principal: Principal = PERSON) -> None:
        await post_message(
            self._store, self._dispatch, session, text, principal=principal, transport=TRANSPORT
        )

    async def advance(self, session: SessionId) -> None:
        """The answer was posted together with the job for a worker."""

    async def close(self) -> None:
        """Nothing is open here."""
