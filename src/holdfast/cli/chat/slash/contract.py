"""The contract of slash commands: what a command is, and the chat that it acts on."""

import shlex
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from holdfast.app import Runtime
from holdfast.cli.chat.activity import Activity
from holdfast.cli.chat.folded import FoldedTexts
from holdfast.cli.chat.modes import ModeTracker
from holdfast.cli.terminal.screen import Screen
from holdfast.cli.views.session_log import SessionLog
from holdfast.core import Outcome, Principal
from holdfast.core.errors import InvalidInput
from holdfast.session import Session


class ChatContext(Protocol):
    """The chat in which a command was typed."""

    session: Session
    activity: Activity
    modes: ModeTracker
    queue: deque[tuple[str, Principal]]
    log: SessionLog
    folded: FoldedTexts

    @property
    def name(self) -> str:
        """The name of the transport, as the journal records it."""
        ...

    @property
    def runtime(self) -> Runtime:
        """The runtime, to open other sessions."""
        ...

    @property
    def screen(self) -> Screen:
        """The screen to print on."""
        ...

    async def wait_until_idle(self) -> bool:
        """Whether no turn is running. A turn that is about to end gets a moment to do so."""
        ...

    async def run_now(self, words: str) -> Outcome | None:
        """Run a message or a command as a turn, and return its outcome; None if it was stopped. Only while no turn runs."""
        ...

    async def ask_line(self, question: str) -> str | None:
        """Read one line as the answer to a question; None if the input ends."""
        ...

    def attach(self, session: Session) -> None:
        """Switch the chat to this session."""
        ...

    def resume(self) -> None:
        """Resume the last turn if it can continue."""
        ...

    def leave(self) -> None:
        """End the chat."""
        ...


Action = Callable[[ChatContext, str], Awaitable[None]]


class Command(NamedTuple):
    """A slash command: usage, description and implementation."""

    usage: str
    description: str
    action: Action


async def check_ready(chat: ChatContext) -> None:
    """Refuse a command that must not run during a turn. Raises InvalidInput."""
    if not await chat.wait_until_idle():
        raise InvalidInput("a turn is running", hint="wait for it, or stop it with Ctrl-C")


def split_words(rest: str) -> list[str]:
    """The words after a command, such as paths. Quotes keep spaces, as in a shell; an apostrophe alone is a letter."""
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()
