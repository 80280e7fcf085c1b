"""Services: what every transport offers a person, as functions over values. The command line and the web page show the same ones."""

from holdfast.services.active_grants import ShownGrant, active_grants
from holdfast.services.answer import Delivered, check_response, deliver_answer, saved_coverage, saved_rule
from holdfast.services.audit import audit_csv
from holdfast.services.budget_view import BudgetView, view_budget
from holdfast.services.call_text import call_lines, exact_call
from holdfast.services.check_proposed import CheckRun, check_proposed
from holdfast.services.control import request_of_holder, send_control_request
from holdfast.services.conversation import ConversationItem, conversation, items_of
from holdfast.services.doctor.check_result import CheckResult
from holdfast.services.doctor.run_checks import run_checks
from holdfast.services.notifications import (
    DeliveryFailed,
    Notifications,
    NotificationSender,
    agent_waits,
    check_target,
    deliver,
    is_safe_address,
    notify_about,
    read_failures,
    resolve_secret,
    sample_notification,
)
from holdfast.services.outcome_text import answer_text, describe_outcome
from holdfast.services.policy_inputs import RecordedCalls, request_for, with_known_tools
from holdfast.services.policy_record import RecordedBacktest, SuggestedRules, backtest_recorded, suggest_rules
from holdfast.services.proposals import (
    DecidedProposals,
    ProposalAction,
    choose_proposals,
    decide_hunks,
    decide_proposals,
)
from holdfast.services.return_points import ReturnPoint, return_points
from holdfast.services.search import FoundPassage, search_sessions
from holdfast.services.telemetry import Metrics, Traces, TraceSpan, serve_metrics, system_exporter
from holdfast.services.timeline import Timeline, TimelineEntry, timeline_of
from holdfast.services.usage import USAGE_GROUPS, UsageGroup, UsageRow, total_usage, usage
from holdfast.services.waiting_calls import KeptWords, WaitingCall, describe_waiting, select_waiting, waiting

__all__ = [
    "USAGE_GROUPS",
    "BudgetView",
    "CheckResult",
    "CheckRun",
    "ConversationItem",
    "DecidedProposals",
    "Delivered",
    "DeliveryFailed",
    "FoundPassage",
    "KeptWords",
    "Metrics",
    "NotificationSender",
    "Notifications",
    "ProposalAction",
    "RecordedBacktest",
    "RecordedCalls",
    "ReturnPoint",
    "ShownGrant",
    "SuggestedRules",
    "Timeline",
    "TimelineEntry",
    "TraceSpan",
    "Traces",
    "UsageGroup",
    "UsageRow",
    "WaitingCall",
    "active_grants",
    "agent_waits",
    "answer_text",
    "audit_csv",
    "backtest_recorded",
    "call_lines",
    "check_proposed",
    "check_response",
    "check_target",
    "choose_proposals",
    "conversation",
    "decide_hunks",
    "decide_proposals",
    "deliver",
    "deliver_answer",
    "describe_outcome",
    "describe_waiting",
    "exact_call",
    "is_safe_address",
    "items_of",
    "notify_about",
    "read_failures",
    "request_for",
    "request_of_holder",
    "resolve_secret",
    "return_points",
    "run_checks",
    "sample_notification",
    "saved_coverage",
    "saved_rule",
    "search_sessions",
    "select_waiting",
    "send_control_request",
    "serve_metrics",
    "suggest_rules",
    "system_exporter",
    "timeline_of",
    "total_usage",
    "usage",
    "view_budget",
    "waiting",
    "with_known_tools",
]
