"""Events of teams: attached agents, messages and notices."""

from holdfast.core.events.base import Event
from holdfast.core.ids import Principal
from holdfast.core.outcomes import Outcome


class MemberAttached(Event, tag="member-bound"):
    """A team member's session was attached to a conversation of another agent; a higher generation started without memory."""

    kind: str
    conversation: str
    generation: int = 1
    folder: str = ""
    version: str = ""
    reason: str = ""


class NoticeQueued(Event, tag="notice-left"):
    """A team member queued a notice for the next turn; an expired notice is not delivered."""

    notice: str
    text: str
    principal: Principal
    expires_ms: int


class NoticesDelivered(Event, tag="notices-delivered"):
    """Queued notices were delivered with a message."""

    notices: tuple[str, ...]
    message: str


class MessageQueued(Event, tag="letter-left"):
    """A team member queued a message without waiting for the reply; it is delivered even after a restart."""

    message: str
    text: str
    principal: Principal
    hops: int = 0


class MessageSettled(Event, tag="letter-settled"):
    """The outcome of a queued message; the reply, if there was one, is in the session of the pair."""

    message: str
    outcome: Outcome
