"""Sessions: post a message, advance the turn, hear the events; and everything a person may do with them."""

from holdfast.session.abandoned import close_abandoned
from holdfast.session.approver import Approver
from holdfast.session.assembly import assemble
from holdfast.session.forking import plan_fork
from holdfast.session.host import Host
from holdfast.session.keeper import Gatekeeper
from holdfast.session.parts import Parts, Place
from holdfast.session.person import ASK_PERSON
from holdfast.session.replaying import Divergence, Replay, replay
from holdfast.session.rewinding import RewindPlan, last_point, plan_rewind
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.status import Lifecycle, Status, TurnRecord, workspace_of
from holdfast.session.terms import Choices, Terms, record_changes, settle
from holdfast.session.transport import ScriptedTransport, Transport
from holdfast.session.view import VIEW_TOOLS

__all__ = [
    "ASK_PERSON",
    "VIEW_TOOLS",
    "Approver",
    "Choices",
    "Divergence",
    "Gatekeeper",
    "Host",
    "Lifecycle",
    "Parts",
    "Place",
    "Replay",
    "RewindPlan",
    "ScriptedTransport",
    "Session",
    "Settings",
    "Status",
    "Terms",
    "Transport",
    "TurnRecord",
    "assemble",
    "close_abandoned",
    "last_point",
    "plan_fork",
    "plan_rewind",
    "record_changes",
    "replay",
    "settle",
    "workspace_of",
]
