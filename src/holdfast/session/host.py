"""The host: which sessions are live in this process, and how many may be."""

from holdfast.core import SessionId, counted
from holdfast.core.errors import SessionNotReady
from holdfast.session.session import Session


class Host:
    """A registry of live sessions. Sessions share nothing through it."""

    def __init__(self, *, max_sessions: int = 10_000) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[SessionId, Session] = {}

    def admit(self, session: Session) -> None:
        """Take a session in. Raises SessionNotReady where there is no room."""
        if len(self._sessions) >= self._max_sessions:
            raise SessionNotReady(
                f"no more than {counted(self._max_sessions, 'session')} may be live at once",
                hint="close one first",
            )
        self._sessions[session.id] = session

    def dismiss(self, session: SessionId) -> None:
        """Forget a session that was closed."""
        self._sessions.pop(session, None)

    def live(self) -> tuple[Session, ...]:
        """Every live session, in the order it came."""
        return tuple(self._sessions.values())

    async def close(self) -> None:
        """Close every live session."""
        for session in self.live():
            await session.close()
