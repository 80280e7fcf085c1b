"""Sessions: send a message, advance a turn, follow the events, and everything else a person can do with a session."""

from holdfast.session.approver import Approver
from holdfast.session.build import SessionParts, SessionPaths, build_session
from holdfast.session.external_agent import ExternalAgentSession, expire_orphaned_escalations
from holdfast.session.options import ResolvedOptions, SessionOptions, record_changes, resolve_options
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
    "Divergence",
    "ExternalAgentSession",
    "Lifecycle",
    "Replay",
    "ResolvedOptions",
    "RewindPlan",
    "ScriptedTransport",
    "Session",
    "SessionOptions",
    "SessionParts",
    "SessionPaths",
    "Settings",
    "Status",
    "Transport",
    "TurnRecord",
    "build_session",
    "expire_orphaned_escalations",
    "last_point",
    "plan_fork",
    "plan_rewind",
    "record_changes",
    "replay",
    "resolve_options",
    "workspace_of",
]
