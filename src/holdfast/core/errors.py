"""Every exception of Holdfast. An error means misuse or a fault; a refusal is a value, not an error.

HoldfastError
├── InvalidInput            the input is not valid
│   ├── InvalidId           not a valid session id
│   ├── InvalidName         not a valid session name
│   ├── InvalidConfig       config.toml or an option is not valid
│   └── InvalidPolicy       a policy file is not valid; names line and column
├── SessionError
│   ├── SessionNotFound     no session has this id, prefix or name
│   ├── SessionAmbiguous    several sessions match this prefix or name
│   ├── SessionExists       the id or name is taken
│   ├── SessionNotReady     a turn is running, or the session is paused
│   └── SessionIsClosed     the session takes no more turns
├── StoreError
│   ├── SessionHeld         another process holds the session's lease
│   ├── LeaseLost           another process took over the lease; the write was refused
│   ├── JournalDamaged      events or blobs are missing, changed or unreadable
│   ├── VersionTooOld       a newer version of Holdfast wrote the session
│   └── StoreUnavailable    the disk or the database does not work
├── PathRefused             a path outside the workspace, or not to a regular file
├── CommitConflict          the base of a proposal changed; nothing was committed
├── QuotaExceeded           the workspace would exceed its size limit
├── ToolError
│   ├── ToolFailed          the tool returned an error
│   └── ToolTimeout         the tool did not answer in time
├── CommandError            the command sandbox cannot run programs
├── GuestError
│   ├── EngineMissing       the sandbox engine is not installed
│   ├── EngineNotBuilt      the sandbox engine must be built first
│   └── SnapshotRefused     a snapshot that is not ours, or does not match this engine
├── ModelError
│   ├── ModelMissing        no model is configured
│   ├── ModelUnavailable    network, overload or server error after all retries
│   ├── ModelRefused        the provider rejected the request or the key
│   └── ContextExceeded     the conversation exceeds the model's context window
├── BudgetExceeded          a limit does not allow the next step
├── EscalationUnknown       no such escalation, or it is already settled
└── Diverged                a replay differs from the journal
"""

import errno
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.core.messages import Usage


class HoldfastError(Exception):
    """Base of all errors of Holdfast. `code` is stable and documented; `hint` says what to do next."""

    code: ClassVar[str] = "holdfast"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class InvalidInput(HoldfastError):
    """The input is not valid."""

    code = "invalid-input"


class InvalidId(InvalidInput):
    """Not a valid session id."""

    code = "invalid-id"


class InvalidName(InvalidInput):
    """Not a valid session name."""

    code = "invalid-name"


class InvalidConfig(InvalidInput):
    """config.toml or an option is not valid."""

    code = "invalid-config"


class InvalidPolicy(InvalidInput):
    """A policy file is not valid. Line and column are 1-based; 0 means unknown."""

    code = "invalid-policy"

    def __init__(
        self, message: str, *, source: str = "", line: int = 0, column: int = 0, hint: str | None = None
    ) -> None:
        place = f"{source}:{line}:{column}: " if line else f"{source}: " if source else ""
        super().__init__(f"{place}{message}", hint=hint)
        self.source, self.line, self.column = source, line, column


class SessionError(HoldfastError):
    """A session does not exist, or its state does not allow the operation."""

    code = "session"


class SessionNotFound(SessionError):
    """No session has this id, prefix or name."""

    code = "session-not-found"


class SessionAmbiguous(SessionError):
    """Several sessions match this prefix or name."""

    code = "session-ambiguous"


class SessionExists(SessionError):
    """The id or name is taken."""

    code = "session-exists"


class SessionNotReady(SessionError):
    """A turn is running, or the session is paused."""

    code = "session-not-ready"


class SessionIsClosed(SessionError):
    """The session takes no more turns."""

    code = "session-closed"


class StoreError(HoldfastError):
    """The store cannot perform the operation."""

    code = "store"


class SessionHeld(StoreError):
    """Another process holds the session's lease."""

    code = "session-held"


class LeaseLost(StoreError):
    """Another process took over the lease; the write was refused, not merged."""

    code = "lease-lost"


class JournalDamaged(StoreError):
    """Events or blobs are missing, changed or unreadable."""

    code = "journal-damaged"


class VersionTooOld(StoreError):
    """A newer version of Holdfast wrote the session, and this one cannot read all of it."""

    code = "version-too-old"


class StoreUnavailable(StoreError):
    """The disk or the database does not work."""

    code = "store-unavailable"


class PathRefused(HoldfastError):
    """A path outside the workspace, or not to a regular file."""

    code = "path-refused"


class CommitConflict(HoldfastError):
    """The base of a proposal changed since it was staged; nothing was committed."""

    code = "commit-conflict"

    def __init__(self, message: str, *, paths: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class QuotaExceeded(HoldfastError, OSError):
    """The workspace would exceed its size limit. It is an OSError, so code that writes treats it as a full disk."""

    code = "quota-exceeded"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.errno = errno.EDQUOT


class ToolError(HoldfastError):
    """A tool call failed."""

    code = "tool"


class ToolFailed(ToolError):
    """The tool returned an error; the model may see the message. `usage` is what a model consumed before it failed."""

    code = "tool-failed"

    def __init__(self, message: str, *, hint: str | None = None, usage: "Usage | None" = None) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage


class ToolTimeout(ToolError):
    """The tool did not answer in time."""

    code = "tool-timeout"


class CommandError(HoldfastError):
    """The command sandbox cannot start, has died, or cannot do what was asked."""

    code = "command"


class GuestError(HoldfastError):
    """A guest engine cannot run."""

    code = "guest"


class EngineMissing(GuestError):
    """The sandbox engine is not installed; it is never replaced by a weaker one."""

    code = "engine-missing"


class EngineNotBuilt(GuestError):
    """The sandbox engine must be built first; the caller decides when to call `make_ready`, which builds it."""

    code = "engine-unready"

    def __init__(
        self, message: str, *, make_ready: "Callable[[], Awaitable[None]]", hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.make_ready = make_ready


class SnapshotRefused(GuestError):
    """A snapshot that is not ours, or does not match this engine."""

    code = "snapshot-refused"


class ModelError(HoldfastError):
    """A language model did not answer. `usage` is what the request cost anyway; None if that is unknown."""

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
    """The conversation exceeds the model's context window."""

    code = "context-exceeded"


class BudgetExceeded(HoldfastError):
    """A limit does not allow the next step."""

    code = "budget-exceeded"

    def __init__(self, message: str, *, dimension: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.dimension = dimension


class EscalationUnknown(HoldfastError):
    """No such escalation, or it is already settled."""

    code = "escalation-unknown"


class Diverged(HoldfastError):
    """A replay differs from the journal."""

    code = "diverged"
