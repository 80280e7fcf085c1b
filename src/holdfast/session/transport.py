"""Transports: how a person's words come in and events go out. They hold no rights: whatever they do goes through the session."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.core import Escalation, Outcome, Response
from holdfast.session.session import Session


class Transport(Protocol):
    """A way to talk with a session until the person leaves; the result is the exit status."""

    @property
    def name(self) -> str:
        """What stands in the record of what came through it."""
        ...

    async def run(self, session: Session) -> int:
        """Carry messages in and outcomes out."""
        ...


class ScriptedTransport:
    """The public fake: says what it was told to say, answers escalations from a list, keeps what came back."""

    name = "script"

    def __init__(self, messages: Sequence[str], answers: Sequence[Response] = ()) -> None:
        self._messages = tuple(messages)
        self._answers = list(answers)
        self.outcomes: list[Outcome] = []
        self.asked: list[Escalation] = []

    async def run(self, session: Session) -> int:
        session.approver, session.approver_name = self._approve, self.name
        for message in self._messages:
            self.outcomes.append(await session.send(message, transport=self.name))
        return 0

    async def _approve(self, escalation: Escalation) -> Response | None:
        self.asked.append(escalation)
        return self._answers.pop(0) if self._answers else None
