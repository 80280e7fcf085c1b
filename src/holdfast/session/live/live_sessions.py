"""The registry of sessions that are live in this process, and how many there may be."""

from collections.abc import Callable

from holdfast.core import SessionId, pluralize
from holdfast.core.errors import SessionNotReady
from holdfast.session.session import Session


class LiveSessions:
    """A registry of live sessions. Sessions share nothing through it."""

    def __init__(self, *, max_sessions: int = 10_000) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[SessionId, Session] = {}
        self._on_open: list[Callable[[Session], None]] = []

    def on_open(self, callback: Callable[[Session], None]) -> None:
        """Call a function with every session that is live, and with each that becomes live."""
        self._on_open.append(callback)
        for session in self.all():
            callback(session)

    def add(self, session: Session) -> None:
        """Register a session. Raises SessionNotReady at the limit."""
        self.check_room()
        self._sessions[session.id] = session
        for callback in self._on_open:
            callback(session)

    def check_room(self) -> None:
        """Raise SessionNotReady at the limit."""
        if len(self._sessions) >= self._max_sessions:
            raise SessionNotReady(
                f"at most {pluralize(self._max_sessions, 'session')} can be live at once",
                hint="close one first",
            )

    def get(self, session: str) -> Session | None:
        """The live session with this id; None if there is none."""
        found = self._sessions.get(SessionId(session))
        return None if found is None or found.is_suspended else found

    def remove(self, session: SessionId) -> None:
        """Forget a closed session."""
        if (found := self._sessions.get(session)) is not None and found.is_closed:
            del self._sessions[session]

    def all(self) -> tuple[Session, ...]:
        """Every live session, in the order it was added. A suspended one is not live."""
        return tuple(session for session in self._sessions.values() if not session.is_suspended)

    async def close(self) -> None:
        """Close every live session."""
        for session in tuple(self._sessions.values()):
            await session.close()
