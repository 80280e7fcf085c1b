"""The turn driver: finishes what a session left open, then sends it a message.

Every transport that brings a person's text uses it: the single task of the command line, the chat, and a web server. Below
is `Session`, which runs one turn; the driver decides which turn comes next.
"""

from collections.abc import Awaitable, Callable, Sequence

from holdfast.core import PERSON, Needs, Outcome, Principal
from holdfast.session.session import AttachedFile, AttachedText, Session

COMMAND_MARK = "!"
"""Begins a line that is a command for the sandbox."""
AnswerPending = Callable[[], Awaitable[bool]]
"""Answers open escalations without asking anyone, such as pre-approved rules. False if it answered none."""


async def _answer_none() -> bool:
    return False


class TurnDriver:
    """Drives the turns of one session for one transport."""

    def __init__(
        self,
        session: Session,
        *,
        transport: str,
        notify: Callable[[str], None] = lambda _: None,
        answer_pending: AnswerPending = _answer_none,
    ) -> None:
        self._session = session
        self._transport = transport
        self._notify = notify
        self._answer_pending = answer_pending

    @property
    def has_unfinished_turn(self) -> bool:
        """Whether a turn is open, or ran out of a budget that has been raised since."""
        status = self._session.status
        return status.has_open_turn or status.can_reopen_turn

    async def run(
        self,
        text: str | None,
        files: Sequence[AttachedFile] = (),
        attached_text: AttachedText | None = None,
        principal: Principal = PERSON,
    ) -> Outcome | None:
        """Finish the unfinished turn, then send the message. None if there was nothing to do.

        A message that begins with `!` is a command, which runs in the sandbox without the model.
        A turn continues while what it waits for can be answered without a person.
        """
        outcome = await self.resume()
        if text is not None and text.startswith(COMMAND_MARK):
            outcome = await self._session.execute(
                text.removeprefix(COMMAND_MARK).strip(), language="shell", principal=principal
            )
            outcome = await self._while_answered(outcome)
        elif text is not None:
            outcome = await self._session.send(
                text,
                principal=principal,
                transport=self._transport,
                files=files,
                attached_text=attached_text,
            )
            outcome = await self._while_answered(outcome)
        return outcome

    async def resume(self) -> Outcome | None:
        """Finish the unfinished turn; None if there is none."""
        if not self.has_unfinished_turn:
            return None
        if self._session.status.can_reopen_turn:
            self._notify("the budget was raised; resuming the last turn")
        return await self._while_answered(await self._session.advance())

    async def _while_answered(self, outcome: Outcome | None) -> Outcome | None:
        while isinstance(outcome, Needs) and await self._answer_pending():
            outcome = await self._session.advance()
        return outcome
