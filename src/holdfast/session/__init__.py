"""Sessions: send a message, advance a turn, follow the events, and everything else a person can do with a session."""

from holdfast.session.approver import Approver
from holdfast.session.branches.merge import MergeConflict, MergePlan, ShownMerge, parent_of
from holdfast.session.branches.rewind_fork import (
    RewindPlan,
    ShownRewind,
    fork_opening,
    last_point,
    plan_fork,
    plan_rewind,
)
from holdfast.session.branches.view_merge import view_merge
from holdfast.session.branches.view_rewind import view_rewind
from holdfast.session.build import SessionParts, SessionPaths, build_session
from holdfast.session.diagnostics import Diagnostic
from holdfast.session.driver import COMMAND_MARK, AnswerPending, TurnDriver
from holdfast.session.external_agent import ExternalAgentSession, expire_orphaned_escalations
from holdfast.session.external_gate import open_external_gate
from holdfast.session.import_archive import ImportedSession, import_archive
from holdfast.session.live.control import ControlWatch, apply_requests
from holdfast.session.live.live_sessions import LiveSessions
from holdfast.session.live.posted_requests import PostedRequestWatch
from holdfast.session.open import create_session, fork_session, resume_session
from holdfast.session.options import SessionOptions, check_options, load_session_policy
from holdfast.session.replay import Divergence, Replay, replay
from holdfast.session.resources import SharedResources
from holdfast.session.session import AttachedFile, AttachedText, Session, attached_file
from holdfast.session.settings import (
    ChannelSettings,
    ConfiguredMessenger,
    MessengerSettings,
    NotifyApprise,
    NotifyCommand,
    NotifyDesktop,
    NotifyEmail,
    NotifyNtfy,
    NotifySettings,
    NotifyTarget,
    NotifyWebhook,
    Settings,
    SlackSettings,
    TelegramSettings,
    Topic,
)
from holdfast.session.shared.travelling_folder import changeable_folder, is_own_folder, readable_folder
from holdfast.session.staged_changes import view_staged
from holdfast.session.status import Lifecycle, Status, TurnRecord, workspace_of
from holdfast.session.tools import ASK_PERSON, VIEW_TOOLS
from holdfast.session.turn_result import TurnResult

__all__ = [
    "ASK_PERSON",
    "COMMAND_MARK",
    "VIEW_TOOLS",
    "AnswerPending",
    "Approver",
    "AttachedFile",
    "AttachedText",
    "ChannelSettings",
    "ConfiguredMessenger",
    "ControlWatch",
    "Diagnostic",
    "Divergence",
    "ExternalAgentSession",
    "ImportedSession",
    "Lifecycle",
    "LiveSessions",
    "MergeConflict",
    "MergePlan",
    "MessengerSettings",
    "NotifyApprise",
    "NotifyCommand",
    "NotifyDesktop",
    "NotifyEmail",
    "NotifyNtfy",
    "NotifySettings",
    "NotifyTarget",
    "NotifyWebhook",
    "PostedRequestWatch",
    "Replay",
    "RewindPlan",
    "Session",
    "SessionOptions",
    "SessionParts",
    "SessionPaths",
    "Settings",
    "SharedResources",
    "ShownMerge",
    "ShownRewind",
    "SlackSettings",
    "Status",
    "TelegramSettings",
    "Topic",
    "TurnDriver",
    "TurnRecord",
    "TurnResult",
    "apply_requests",
    "attached_file",
    "build_session",
    "changeable_folder",
    "check_options",
    "create_session",
    "expire_orphaned_escalations",
    "fork_opening",
    "fork_session",
    "import_archive",
    "is_own_folder",
    "last_point",
    "load_session_policy",
    "open_external_gate",
    "parent_of",
    "plan_fork",
    "plan_rewind",
    "readable_folder",
    "replay",
    "resume_session",
    "view_merge",
    "view_rewind",
    "view_staged",
    "workspace_of",
]
