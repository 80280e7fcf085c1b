"""Sessions: post a message, advance the turn, hear the events; and everything a person may do with them."""

from holdfast.session.approver import Approver
from holdfast.session.build import Parts, Place, assemble
from holdfast.session.external_agent import Gatekeeper, close_abandoned
from holdfast.session.options import Choices, Terms, record_changes, settle
from holdfast.session.replay import Divergence, Replay, replay
from holdfast.session.rewind_fork import RewindPlan, last_point, plan_fork, plan_rewind
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.status import Lifecycle, Status, TurnRecord, workspace_of
from holdfast.session.tools import ASK_PERSON, VIEW_TOOLS
from holdfast.session.transport import ScriptedTransport, Transport

__all__ = [
    "ASK_PERSON",
    "VIEW_TOOLS",
    "Approver",
    "Choices",
    "Divergence",
    "Gatekeeper",
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
