"""A member that is a Holdfast session."""

from typing import Any

from holdfast.core import Error
from holdfast.core.errors import HoldfastError
from holdfast.core.events import HistoryCompacted, ModelReplied, RecordedEvent
from holdfast.core.projection import Projection
from holdfast.session import Session
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.history import PairHistory
from holdfast.teams.message_text import render_message


class SessionMember:
    """Answers with a session's turns: the same journal, gate and policy as for a person."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._history = PairHistory(_SessionEvents(session))
        self._context_tokens = 0
        self._is_closed = False
        session.follow(self._count)

    @property
    def is_alive(self) -> bool:
        return not self._is_closed

    async def ask(self, message: TeamMessage) -> TeamReply:
        recorded = self._history.reply_to(message)
        if recorded is not None:
            return recorded
        interrupted = self._history.interrupted
        try:
            if interrupted is not None:
                outcome = await self._session.advance()
                if interrupted.message_id == message.id and outcome is not None:
                    return self._reply(message) or TeamReply(outcome=outcome)
            outcome = await self._session.send(
                render_message(message), principal=message.principal, transport="teams", message=message.id
            )
        except HoldfastError as error:
            return TeamReply(outcome=Error(message=str(error), code=error.code, hint=error.hint))
        return self._reply(message) or TeamReply(outcome=outcome)

    async def compact(self, *, above_tokens: int) -> bool:
        if self._context_tokens <= above_tokens or len(self._history.turns) < 4:
            return False
        await self._session.compact()
        return True

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._session.close()

    def _reply(self, message: TeamMessage) -> TeamReply | None:
        reply = self._history.reply_to(message)
        return (
            TeamReply(outcome=reply.outcome, text=reply.text, usage=reply.usage)
            if reply is not None
            else None
        )

    def _count(self, entry: RecordedEvent) -> None:
        """Track how many tokens of the model's context the last reply used."""
        if isinstance(entry.event, ModelReplied):
            self._context_tokens = entry.event.usage.input_tokens + entry.event.usage.output_tokens
        elif isinstance(entry.event, HistoryCompacted):
            self._context_tokens = 0


class _SessionEvents:
    """A session's events as the source of a projection."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.recorded: list[RecordedEvent] = []
        session.follow(self.recorded.append)

    def follow(self, follower: Projection[Any], /) -> None:
        """Pass on every event, past and future."""
        self._session.follow(follower)
