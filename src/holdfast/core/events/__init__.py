"""Events: everything that happens in a session, in the past tense. The journal of them is the only truth.

An event is written once and never changed. Fields may be added with a default; none is renamed or removed. Each
recorded event carries the hash of the one before, so a changed, removed or reordered one shows.
"""

from holdfast.core.events.base import Event
from holdfast.core.events.call import CallIntended, CallRefused, CallSettled
from holdfast.core.events.files import ProposalsCommitted, ProposalsRejected, RestorePointMade, SessionRewound
from holdfast.core.events.person import (
    BudgetRaised,
    BudgetWarned,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    GrantGiven,
    GrantRevoked,
)
from holdfast.core.events.record import GENESIS, AnyEvent, Recorded, chain, decode_event, encode_event
from holdfast.core.events.session import (
    FORMAT,
    Noted,
    Parent,
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionPinned,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
)
from holdfast.core.events.team import LetterLeft, LetterSettled, MemberBound, NoticeLeft, NoticesDelivered
from holdfast.core.events.turn import (
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    RunEnded,
    RunParked,
    RunStarted,
    RunStatus,
    ToolReturned,
    TurnEnded,
    TurnParked,
    TurnReopened,
)

__all__ = [
    "FORMAT",
    "GENESIS",
    "AnyEvent",
    "BudgetRaised",
    "BudgetWarned",
    "CallIntended",
    "CallRefused",
    "CallSettled",
    "CodePosted",
    "EscalationAnswered",
    "EscalationExpired",
    "EscalationOpened",
    "Event",
    "GrantGiven",
    "GrantRevoked",
    "HistoryCompacted",
    "LetterLeft",
    "LetterSettled",
    "MemberBound",
    "MessagePosted",
    "ModelAsked",
    "ModelFailed",
    "ModelReplied",
    "Noted",
    "NoticeLeft",
    "NoticesDelivered",
    "Parent",
    "ProposalsCommitted",
    "ProposalsRejected",
    "Recorded",
    "RestorePointMade",
    "RunEnded",
    "RunParked",
    "RunStarted",
    "RunStatus",
    "SessionClosed",
    "SessionOpened",
    "SessionPaused",
    "SessionPinned",
    "SessionReconfigured",
    "SessionRenamed",
    "SessionResumed",
    "SessionRewound",
    "ToolReturned",
    "TurnEnded",
    "TurnParked",
    "TurnReopened",
    "chain",
    "decode_event",
    "encode_event",
]
