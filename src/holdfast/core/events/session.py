"""What happens to a session as a whole."""

from typing import Literal

from holdfast.core.events.base import Event
from holdfast.core.ids import Principal, SessionId
from holdfast.core.limits import Limits
from holdfast.core.values import Value

FORMAT = 1


class Parent(Value):
    """Where a fork came from: the parent's events up to and with `seq` are its own."""

    session: SessionId
    seq: int


class SessionOpened(Event, tag="session-opened"):
    """The first event of every journal."""

    format: int = FORMAT
    principal: Principal
    folder: str
    """The folder it was started in; `--continue` looks for the last session of a folder."""
    workspace: str
    policy: str
    policy_digest: str
    model: str
    limits: Limits = Limits()
    name: str | None = None
    description: str = ""
    parent: Parent | None = None
    taken_back: tuple[str, ...] = ()
    """Of a fork: ids of grants and approvals in its parent's part that were taken back there since; they do not hold here."""


class SessionRenamed(Event, tag="session-renamed"):
    """A session got another name, or none."""

    name: str | None


class SessionPinned(Event, tag="session-pinned"):
    """A session is, or no longer is, exempt from pruning."""

    is_pinned: bool


class SessionReconfigured(Event, tag="session-reconfigured"):
    """Policy, model or workspace changed from here on; an empty field stayed as it was."""

    policy: str = ""
    policy_digest: str = ""
    model: str = ""
    workspace: str = ""


class SessionPaused(Event, tag="session-paused"):
    """No turn is taken until it is resumed."""


class SessionResumed(Event, tag="session-resumed"):
    """Turns are taken again."""


class SessionClosed(Event, tag="session-closed"):
    """No more turns. Nothing is deleted."""

    how: Literal["completed", "aborted", "failed"] = "completed"
    reason: str = ""


class Noted(Event, tag="noted"):
    """Something worth telling the person that changes nothing."""

    code: str
    text: str
