"""What happens between the teams."""

from holdfast.core.events.base import Event
from holdfast.core.ids import Principal
from holdfast.core.outcomes import Outcome


class MemberAttached(Event, tag="member-bound"):
    """A session of a team lives in this conversation of another agent; a higher generation began without memory."""

    kind: str
    conversation: str
    generation: int = 1
    folder: str = ""
    version: str = ""
    reason: str = ""


class NoticeQueued(Event, tag="notice-left"):
    """A colleague left word for the next turn; after its time it is not delivered."""

    notice: str
    text: str
    principal: Principal
    expires_ms: int


class NoticesDelivered(Event, tag="notices-delivered"):
    """Word that a colleague had left was handed over with a message."""

    notices: tuple[str, ...]
    message: str


class MessageQueued(Event, tag="letter-left"):
    """A colleague sent a message and does not wait for its answer; it is delivered also after a restart."""

    message: str
    text: str
    principal: Principal
    hops: int = 0


class MessageSettled(Event, tag="letter-settled"):
    """What became of a message that nobody waits for; its answer, where it got one, is in the session of the pair."""

    message: str
    outcome: Outcome
