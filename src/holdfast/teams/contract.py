"""Contracts of members and agents, and the messages they exchange.

A member answers in one conversation, that of one pair. Callers send it one message at a time. An agent is an external
program; `ExternalMember` turns it into a member by adding our journal and our gate.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from holdfast.core import JsonObject, Outcome, Principal, Refused, Returned, Usage, Value


class TeamMessage(Value):
    """One message from one team to another. The sender chooses the id, so sending it twice is harmless."""

    id: str
    """A UUID in lower case."""
    text: str
    sender: str
    principal: Principal
    notices: tuple[str, ...] = ()
    """The texts of the notices queued since the last message, oldest first."""
    hops: int = 0
    briefing: str = ""
    """What was said earlier, for an agent that has no memory of it."""


class TeamReply(Value):
    """The outcome of a message. `notes` tells the sender about side conditions, such as lost memory."""

    outcome: Outcome
    text: str = ""
    usage: Usage = Usage()
    generation: int = 1
    notes: tuple[str, ...] = ()


class Member(Protocol):
    """Answers for a team in one conversation."""

    @property
    def is_alive(self) -> bool:
        """Whether it can take a message. The pool replaces a member that cannot."""
        ...

    async def ask(self, message: TeamMessage) -> TeamReply:
        """Deliver a message and wait for the answer. A message that was already answered returns the recorded answer.

        Failures are outcomes, not exceptions. Cancellation interrupts the turn; the member stays usable.
        """
        ...

    async def compact(self, *, above_tokens: int) -> bool:
        """Summarise the conversation if it uses more than `above_tokens`; return whether it did."""
        ...

    async def close(self) -> None:
        """Release every resource. Idempotent; the conversation can be resumed later."""
        ...


class MemberCapabilities(Value):
    """What an agent can do, as measured rather than as claimed."""

    gate: Literal["every-call", "asks", "none"] = "none"
    """Which of its own tool calls the agent submits to our gate."""
    is_idempotent: bool = False
    """Whether sending the same message twice runs it once."""


class OpenedConversation(Value):
    """The conversation that an agent resumed or created. `is_new` means that it has no earlier messages."""

    conversation: str
    is_new: bool
    version: str = ""
    reason: str = ""


OnCall = Callable[[str, JsonObject], Awaitable[Returned | Refused]]
"""Called before an agent uses one of its own tools, with the tool's name and input."""


Compaction = Literal["unneeded", "done", "unable"]
"""What came of an attempt to summarise a conversation in place."""


class Agent(Protocol):
    """An external program that keeps a conversation."""

    @property
    def kind(self) -> str:
        """The kind of program, as one word."""
        ...

    @property
    def capabilities(self) -> MemberCapabilities:
        """What this program can do."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether it can take a message."""
        ...

    async def open(self, conversation: str | None) -> OpenedConversation:
        """Resume a conversation, or create one if none is given or it is gone. Raises MemberFailed."""
        ...

    async def ask(self, message: TeamMessage, on_call: OnCall) -> TeamReply:
        """Run one turn. Raises MemberLost if the program ends during it. Cancellation interrupts the turn."""
        ...

    async def compact(self, *, above_tokens: int, estimated_tokens: int) -> Compaction:
        """Summarise the conversation in place if it uses more than `above_tokens`.

        `estimated_tokens` counts for an agent that does not say how many it uses.
        """
        ...

    async def start_over(self) -> OpenedConversation:
        """Start a new conversation. The agent keeps the old one and does not use it any more."""
        ...

    async def close(self) -> None:
        """Stop the program and every process it started. Idempotent."""
        ...
