"""Everything Holdfast raises, drawn as a tree. An error is misuse or breakage; a refusal is a value, not an error.

HoldfastError
├── InvalidInput            what was given cannot be understood
│   ├── InvalidId           a session id that may not be one
│   ├── InvalidName         a session name that may not be one
│   ├── InvalidConfig       config.toml or an option
│   └── InvalidPolicy       a policy file; names line and column
├── SessionError
│   ├── SessionNotFound     no such id, prefix or name
│   ├── SessionAmbiguous    a prefix or name that fits several
│   ├── SessionExists       the id or name is taken
│   ├── SessionNotReady     a turn is running, or the session is paused
│   └── SessionClosed       it takes no more turns
├── StoreError
│   ├── SessionHeld         another process writes this session
│   ├── LeaseLost           our lease was taken over; this write was refused
│   ├── JournalDamaged      rows are missing, changed or unreadable
│   └── StoreUnavailable    the disk or database does not answer
├── PathRefused             a path that leads outside, or to what is no plain file
├── CommitConflict          the base of a proposal changed; nothing was committed
├── QuotaExceeded           the workspace would grow past its limit
├── ToolError
│   ├── ToolFailed          the tool answered with an error
│   └── ToolTimeout         the tool did not answer in time
├── GuestError
│   ├── EngineMissing       the sandbox engine is not installed
│   ├── EngineUnready       the sandbox engine has to be built first
│   └── SnapshotRefused     a snapshot that is not ours, or does not fit
├── ModelError
│   ├── ModelMissing        no model is configured
│   ├── ModelUnavailable    network, overload or server error after all retries
│   ├── ModelRefused        the provider rejected the request or the key
│   └── ContextExceeded     the conversation no longer fits the model's window
├── BudgetExceeded          a limit leaves no room for the next step
├── EscalationUnknown       no such escalation, or it is settled already
└── Diverged                a replay did not do what the journal says
"""

import errno
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.core.messages import Usage


class HoldfastError(Exception):
    """Base of all our errors. `code` is stable and documented; `hint` says what to do next."""

    code: ClassVar[str] = "holdfast"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class InvalidInput(HoldfastError):
    """What was given cannot be understood."""

    code = "invalid-input"


class InvalidId(InvalidInput):
    """A session id that may not be one."""

    code = "invalid-id"


class InvalidName(InvalidInput):
    """A session name that may not be one."""

    code = "invalid-name"


class InvalidConfig(InvalidInput):
    """config.toml or an option does not parse."""

    code = "invalid-config"


class InvalidPolicy(InvalidInput):
    """A policy file does not parse; line and column are 1-based and 0 where unknown."""

    code = "invalid-policy"

    def __init__(
        self, message: str, *, source: str = "", line: int = 0, column: int = 0, hint: str | None = None
    ) -> None:
        place = f"{source}:{line}:{column}: " if line else f"{source}: " if source else ""
        super().__init__(f"{place}{message}", hint=hint)
        self.source, self.line, self.column = source, line, column


class SessionError(HoldfastError):
    """A session is not there, or not in a state for what was asked."""

    code = "session"


class SessionNotFound(SessionError):
    """No session has this id, prefix or name."""

    code = "session-not-found"


class SessionAmbiguous(SessionError):
    """A prefix or name fits more than one session."""

    code = "session-ambiguous"


class SessionExists(SessionError):
    """The id or name is taken."""

    code = "session-exists"


class SessionNotReady(SessionError):
    """A turn is running, or the session is paused."""

    code = "session-not-ready"


class SessionClosed(SessionError):
    """The session takes no more turns."""

    code = "session-closed"


class StoreError(HoldfastError):
    """The store cannot do what was asked."""

    code = "store"


class SessionHeld(StoreError):
    """Another process writes this session."""

    code = "session-held"


class LeaseLost(StoreError):
    """Our lease was taken over; this write was refused, not merged."""

    code = "lease-lost"


class JournalDamaged(StoreError):
    """Rows of a journal are missing, changed or unreadable."""

    code = "journal-damaged"


class StoreUnavailable(StoreError):
    """The disk or the database does not answer."""

    code = "store-unavailable"


class PathRefused(HoldfastError):
    """A path that leads outside, or to what is no plain file."""

    code = "path-refused"


class CommitConflict(HoldfastError):
    """The base of a proposal changed since it was staged; nothing was committed."""

    code = "commit-conflict"

    def __init__(self, message: str, *, paths: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class QuotaExceeded(HoldfastError, OSError):
    """The workspace would grow past its limit; to whoever writes it is a full disk like any other."""

    code = "quota-exceeded"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.errno = errno.EDQUOT


class ToolError(HoldfastError):
    """A tool did not do its work."""

    code = "tool"


class ToolFailed(ToolError):
    """The tool answered with an error; the message may be shown to the model. `usage` is what a model took all the same."""

    code = "tool-failed"

    def __init__(self, message: str, *, hint: str | None = None, usage: "Usage | None" = None) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage


class ToolTimeout(ToolError):
    """The tool did not answer in time."""

    code = "tool-timeout"


class GuestError(HoldfastError):
    """A guest engine cannot run."""

    code = "guest"


class EngineMissing(GuestError):
    """The sandbox engine is not installed; it is never replaced by a weaker one."""

    code = "engine-missing"


class EngineNotBuilt(GuestError):
    """The sandbox engine has to be built first; `make_ready` does it, whenever the caller has the time."""

    code = "engine-unready"

    def __init__(
        self, message: str, *, make_ready: "Callable[[], Awaitable[None]]", hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.make_ready = make_ready


class SnapshotRefused(GuestError):
    """A snapshot that is not ours, or does not fit this engine."""

    code = "snapshot-refused"


class ModelError(HoldfastError):
    """A language model did not answer; `usage` is what was paid all the same, None where nothing is known of it."""

    code = "model"

    def __init__(self, message: str, *, hint: str | None = None, usage: "Usage | None" = None) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage


class ModelMissing(ModelError):
    """No model is configured."""

    code = "model-missing"


class ModelUnavailable(ModelError):
    """Network, overload or server error after all retries."""

    code = "model-unavailable"


class ModelRefused(ModelError):
    """The provider rejected the request or the key."""

    code = "model-refused"


class ContextExceeded(ModelError):
    """The conversation no longer fits the model's window."""

    code = "context-exceeded"


class BudgetExceeded(HoldfastError):
    """A limit leaves no room for the next step."""

    code = "budget-exceeded"

    def __init__(self, message: str, *, dimension: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.dimension = dimension


class EscalationUnknown(HoldfastError):
    """No such escalation, or it is settled already."""

    code = "escalation-unknown"


class Diverged(HoldfastError):
    """A replay did not do what the journal says."""

    code = "diverged"
