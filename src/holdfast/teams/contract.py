"""What every member promises, and what every foreign agent does.

A member keeps one conversation, that of one pair. It is asked one message at a time; whoever asks sees to that. A foreign
agent is a program of somebody else's: `recording` makes a member of it, with our journal and our gate around it.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from holdfast.core import JsonObject, Outcome, Principal, Refused, Returned, Usage, Value


class TeamMessage(Value):
    """One message on its way: its id is the sender's, and makes sending it twice harmless."""

    id: str
    """A UUID in lower case."""
    text: str
    sender: str
    principal: Principal
    notices: tuple[str, ...] = ()
    """Word that was left since the last message, oldest first."""
    hops: int = 0


class TeamReply(Value):
    """What came back of a letter. `notes` is what its sender has to know besides, such as a memory that was lost."""

    outcome: Outcome
    text: str = ""
    usage: Usage = Usage()
    generation: int = 1
    notes: tuple[str, ...] = ()


class Member(Protocol):
    """Who answers for a team in one conversation."""

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; one that is not is taken up anew."""
        ...

    async def ask(self, message: TeamMessage) -> TeamReply:
        """Hand over a letter and wait for the answer. A letter answered before gets the recorded answer.

        Trouble is an outcome. Cancelled, it interrupts the turn and leaves the member fit for the next letter.
        """
        ...

    async def compact(self, *, above_tokens: int) -> bool:
        """Summarise the conversation where it fills more than so many tokens."""
        ...

    async def close(self) -> None:
        """Let go of everything held. Idempotent; the conversation can be taken up again."""
        ...


class Capabilities(Value):
    """What an agent can do, as measured and not as it claims."""

    gate: Literal["every-call", "asks", "none"] = "none"
    """Which of its own tool calls we are asked about."""
    is_idempotent: bool = False
    """Whether the same letter twice runs once."""


class OpenedConversation(Value):
    """The conversation an agent has taken up or begun. `is_new` says that nothing from before is in it."""

    conversation: str
    is_new: bool
    version: str = ""
    reason: str = ""


OnCall = Callable[[str, JsonObject], Awaitable[Returned | Refused]]
"""Asked before an agent uses a tool of its own: the tool's name and its input."""


class Agent(Protocol):
    """A foreign program that keeps a conversation."""

    @property
    def kind(self) -> str:
        """Which program, in a word."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        ...

    async def open(self, conversation: str | None) -> OpenedConversation:
        """Take a conversation up, or begin one. One that is gone is begun anew and said so. Raises MemberFailed."""
        ...

    async def ask(self, message: TeamMessage, on_call: OnCall) -> TeamReply:
        """One turn. Raises MemberLost where the program ends in the middle of it; cancelled, it interrupts."""
        ...

    async def compact(self, *, above_tokens: int) -> bool:
        """Summarise where more than so many tokens are in use."""
        ...

    async def close(self) -> None:
        """End the program and all it started. Idempotent."""
        ...
