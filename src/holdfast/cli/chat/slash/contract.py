"""What a command of a conversation is, and what it is handed: the conversation it is typed in."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from holdfast.app import Runtime
from holdfast.cli.terminal.screen import Screen
from holdfast.cli.views.session_log import SessionLog
from holdfast.core.errors import InvalidInput
from holdfast.session import Session


class ChatContext(Protocol):
    """The conversation that a command is typed in."""

    session: Session
    log: SessionLog

    @property
    def name(self) -> str:
        """The transport, as it stands in the record."""
        ...

    @property
    def runtime(self) -> Runtime:
        """Where other sessions come from."""
        ...

    @property
    def screen(self) -> Screen:
        """Where words go."""
        ...

    async def quiet(self) -> bool:
        """Whether no turn runs; one that has said its last word is given a moment to end."""
        ...

    def adopt(self, session: Session) -> None:
        """Talk with this session from here on."""
        ...

    def resume(self) -> None:
        """Resume the last turn if it can continue."""
        ...

    def leave(self) -> None:
        """End the conversation."""
        ...


Action = Callable[[ChatContext, str], Awaitable[None]]


class Command(NamedTuple):
    """What is typed, what it does, and the function that does it."""

    usage: str
    what: str
    action: Action


async def check_ready(talk: ChatContext) -> None:
    """Some things must not happen during a turn. Raises InvalidInput."""
    if not await talk.quiet():
        raise InvalidInput("a turn is running", hint="wait for it, or stop it with Ctrl-C")
