"""Errors of teams.

TeamError
├── UnknownTeam        the roster has no team of that name
├── AskRefused         the sender may not ask this team
├── PoolFull           every member is busy and none became free in time
├── WouldDeadlock      the question would wait for its own answer
├── TooManyHops        a question was forwarded too often
├── MemberMissing      a member's program is not installed, or too old to be gated
├── MemberFailed       a member's conversation could not be created or resumed
└── MemberLost         a member's process ended or stopped responding during a message

A damaged journal affects only its own pair; `with_recovery_hint` adds the commands that recover it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.core import SessionId
from holdfast.core.errors import HoldfastError, JournalDamaged


@contextmanager
def with_recovery_hint(session: SessionId) -> Iterator[None]:
    """Add to JournalDamaged how the pair can continue. Only a person may discard what is left of a journal."""
    try:
        yield
    except JournalDamaged as damage:
        raise JournalDamaged(
            str(damage),
            hint=f"`holdfast export {session}` saves what can be read; after `holdfast delete {session}` the next"
            " message starts a new conversation. Another thread (--thread NAME) needs neither.",
        ) from None


class TeamError(HoldfastError):
    """A failure between teams."""

    code = "team"


class UnknownTeam(TeamError):
    """The roster has no team of that name."""

    code = "unknown-team"


class AskRefused(TeamError):
    """The sender may not ask this team."""

    code = "ask-refused"


class PoolFull(TeamError):
    """Every member is busy and none became free in time."""

    code = "pool-full"


class WouldDeadlock(TeamError):
    """The question would wait for its own answer."""

    code = "would-deadlock"


class TooManyHops(TeamError):
    """A question was forwarded too often."""

    code = "too-many-hops"


class MemberMissing(TeamError):
    """A member's program is not installed, or too old to be gated."""

    code = "member-missing"


class MemberFailed(TeamError):
    """A member's conversation could not be created or resumed."""

    code = "member-failed"


class MemberLost(TeamError):
    """A member's process ended or stopped responding during a message."""

    code = "member-lost"
