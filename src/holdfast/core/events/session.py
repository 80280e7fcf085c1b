"""Events of a session as a whole."""

from typing import Literal

from holdfast.core.events.base import Event
from holdfast.core.ids import Principal, SessionId
from holdfast.core.limits import Limits
from holdfast.core.messages import Usage
from holdfast.core.values import Value

FORMAT = 1

Signer = Literal["", "trusted-home", "this-home"]
"""Who signed a file: the data directory that imports it, another one that its person trusts, or nobody that they know."""


class Parent(Value):
    """The origin of a fork, which shares the parent's events up to and including `seq`."""

    session: SessionId
    seq: int


class SessionOpened(Event, tag="session-opened"):
    """The first event of every journal."""

    format: int = FORMAT
    principal: Principal
    folder: str
    """The folder that the session was started in; `--continue` finds the last session of a folder."""
    workspace: str
    policy: str
    policy_digest: str
    model: str
    sandbox: str = ""
    """Where code runs; empty in journals that do not record it."""
    limits: Limits = Limits()
    name: str | None = None
    description: str = ""
    parent: Parent | None = None
    taken_back: tuple[str, ...] = ()
    """For a fork: ids of grants and approvals in the shared part that the parent has revoked since; they are not valid here."""
    queue: str = ""
    """Which workers run it: those of a queue, or those of one machine (`host:NAME`). Empty: any."""
    is_imported: bool = False
    """For a fork: all that it shares with its parent came from a file."""
    signer: Signer = ""
    """For a fork: who signed that file."""


class SessionRenamed(Event, tag="session-renamed"):
    """A session was renamed, or lost its name."""

    name: str | None


class SessionTitled(Event, tag="session-titled"):
    """A model gave a session a title, from its first exchange."""

    title: str = ""
    model: str = ""
    usage: Usage = Usage()


class SessionPinned(Event, tag="session-pinned"):
    """A session became exempt from pruning, or stopped being so."""

    is_pinned: bool


class SessionReconfigured(Event, tag="session-reconfigured"):
    """The policy, model, workspace or sandbox changed; an empty field means no change."""

    policy: str = ""
    policy_digest: str = ""
    model: str = ""
    workspace: str = ""
    sandbox: str = ""


class SessionPaused(Event, tag="session-paused"):
    """The session takes no turns until it is resumed."""


class SessionResumed(Event, tag="session-resumed"):
    """The session takes turns again."""


class SessionClosed(Event, tag="session-closed"):
    """The session takes no more turns. Nothing is deleted."""

    how: Literal["completed", "aborted", "failed"] = "completed"
    reason: str = ""


class ControlRequestApplied(Event, tag="control-request-applied"):
    """The process that holds the session carried out a request of another one, or refused it: `error` says why."""

    request: str
    """The name of the request, which its sender knows."""
    action: str
    """What was requested, such as `cancel-turn`."""
    transport: str
    """Where the request came from, such as `web`."""
    principal: Principal
    error: str = ""
    result: str = ""
    """What its sender asked for, such as the port of a preview."""


class Noted(Event, tag="noted"):
    """A notice for the user, without any effect."""

    code: str
    text: str
    signer: Signer = ""
    """Of an import: who signed the file."""
