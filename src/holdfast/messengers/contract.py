"""The contract of a messenger: how text, questions and files travel between a chat service and Holdfast.

A messenger knows nothing of sessions. It passes on what arrives and sends what it is given; `Bridge` does the rest.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from holdfast.core import Value


class IncomingMessage(Value, tag_field="kind", tag="message"):
    """A message that somebody wrote. `id` is the service's own, and the same if it is delivered again."""

    id: str
    thread: str
    """The conversation: a chat, or a thread of a channel. Each thread has its own session."""
    channel: str
    """Where the thread is, as in the configuration."""
    sender: str
    text: str


class PressedButton(Value, tag_field="kind", tag="button"):
    """A button that somebody pressed. Its value comes from outside and may be forged."""

    id: str
    thread: str
    channel: str
    sender: str
    value: str
    question: str
    """The message with the buttons, as `ask` returned it."""


Incoming = IncomingMessage | PressedButton


class Button(Value):
    """A button below a question."""

    label: str
    value: str


Receive = Callable[[Incoming], Awaitable[None]]
"""Takes what arrived. When it returns, the item is on disk, and the service may forget it."""


class Messenger(Protocol):
    """A chat service."""

    max_text: int
    """The longest text that one message can have."""

    async def run(self, receive: Receive) -> None:
        """Receive until cancelled, in order, reconnecting where the connection ends. Confirm an item after `receive` returns."""
        ...

    async def say(self, thread: str, text: str) -> None:
        """Send a text of at most `max_text` characters. Raises MessengerError."""
        ...

    async def ask(self, thread: str, text: str, buttons: Sequence[Button]) -> str:
        """Send a text with buttons; returns the id of the message. Raises MessengerError."""
        ...

    async def settle(self, thread: str, question: str, text: str) -> None:
        """Replace a question and its buttons by a text. Raises MessengerError."""
        ...

    async def send_file(self, thread: str, name: str, content: bytes, text: str) -> None:
        """Send a file with a text. Raises MessengerError."""
        ...


class MessengerError(Exception):
    """A service did not take a message. The words contain no secret."""
