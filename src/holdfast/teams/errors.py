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
"""

from holdfast.core.errors import HoldfastError


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
