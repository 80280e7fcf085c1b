"""What goes wrong between teams.

TeamError
├── UnknownTeam        nobody of that name is on the roster
├── AskRefused         this team may not ask that one
├── PoolFull           every member is busy and none will be free in time
├── WouldDeadlock      the answer would have to wait for the question
├── TooManyHops        a question was handed on too often
├── MemberMissing      the program of a member is not installed, or too old to be gated
├── MemberFailed       a member's conversation could not be begun or taken up
└── MemberLost         a member's process ended, or fell silent, in the middle of a message

Damage: the record of one pair cannot be read. It is told with the way out, and holds no other pair up.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.core import SessionId
from holdfast.core.errors import HoldfastError, JournalDamaged


@contextmanager
def with_recovery_hint(session: SessionId) -> Iterator[None]:
    """Say of damage how the pair can talk again: only a person gives up what is left of a record."""
    try:
        yield
    except JournalDamaged as damage:
        raise JournalDamaged(
            str(damage),
            hint=f"`holdfast export {session}` saves what can be read; after `holdfast delete {session}` the next"
            " message begins anew. Another thread (--thread NAME) needs neither.",
        ) from None


class TeamError(HoldfastError):
    """Something between teams went wrong."""

    code = "team"


class UnknownTeam(TeamError):
    """Nobody of that name is on the roster."""

    code = "unknown-team"


class AskRefused(TeamError):
    """This team may not ask that one."""

    code = "ask-refused"


class PoolFull(TeamError):
    """Every member is busy and none will be free in time."""

    code = "pool-full"


class WouldDeadlock(TeamError):
    """The answer would have to wait for the question."""

    code = "would-deadlock"


class TooManyHops(TeamError):
    """A question was handed on too often."""

    code = "too-many-hops"


class MemberMissing(TeamError):
    """The program of a member is not installed, or too old to be gated."""

    code = "member-missing"


class MemberFailed(TeamError):
    """A member's conversation could not be begun or taken up."""

    code = "member-failed"


class MemberLost(TeamError):
    """A member's process ended, or fell silent, in the middle of a message."""

    code = "member-lost"
