"""The gate: judges, authorizes, records, charges and executes every call. Escalations, grants, budget and audit live here."""

from holdfast.gate.approval_files import (
    MAX_AMOUNT,
    ApprovalFiles,
    ExternalRequest,
    answer_external,
    list_external_requests,
    write_first_answer,
)
from holdfast.gate.audit import AuditEntry, AuditFile, AuditStats, audit_stats, audit_view
from holdfast.gate.budget import Budget, Reservation, Spending, cost_of
from holdfast.gate.call_index import CallIndex
from holdfast.gate.commands.host_access import NET_CONNECT, AskPerson
from holdfast.gate.commands.own_servers import WebAddress, own_endpoints, published_address, session_link
from holdfast.gate.control_requests import (
    AnswerEscalation,
    AnyControlRequest,
    CancelTurn,
    CommitProposals,
    ControlRequests,
    DecideHunks,
    JournalRequest,
    PostMessage,
    PreviewPort,
    RaiseBudget,
    RejectProposals,
    RevealOutput,
    RevokeGrant,
    RewindSession,
    SessionRequest,
    decode_request,
    signal_holder,
)
from holdfast.gate.deadlines import time_limit
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.gate import Checkpoint, Gate, GateSettings
from holdfast.gate.grants import (
    Grants,
    SavedGrants,
    check_offer,
    covers,
    describe_grant,
    find_offers,
    folder_coverage,
    grant_description,
    grant_for,
    record_added_folders,
)
from holdfast.gate.labels.file_labels import SharedFileLabels
from holdfast.gate.large_values import FetchBlob, LargeValues, decode_blob
from holdfast.gate.loop_detector import LoopDetector
from holdfast.gate.output_filter import OutputFilter
from holdfast.gate.stored_tree_budget import (
    StoredTreeBudget,
    left_in_tree,
    limits_of_tree,
    open_tree_budget,
    share_of,
)
from holdfast.gate.tree_budget import InMemoryTreeBudget, TreeBudget

__all__ = [
    "MAX_AMOUNT",
    "NET_CONNECT",
    "AnswerEscalation",
    "AnyControlRequest",
    "ApprovalFiles",
    "AskPerson",
    "AuditEntry",
    "AuditFile",
    "AuditStats",
    "Budget",
    "CallIndex",
    "CancelTurn",
    "Checkpoint",
    "CommitProposals",
    "ControlRequests",
    "DecideHunks",
    "Escalations",
    "ExternalRequest",
    "FetchBlob",
    "Gate",
    "GateSettings",
    "Grants",
    "InMemoryTreeBudget",
    "JournalRequest",
    "LargeValues",
    "LoopDetector",
    "OutputFilter",
    "PostMessage",
    "PreviewPort",
    "RaiseBudget",
    "RejectProposals",
    "Reservation",
    "RevealOutput",
    "RevokeGrant",
    "RewindSession",
    "Ruling",
    "SavedGrants",
    "SessionRequest",
    "SharedFileLabels",
    "Spending",
    "StoredTreeBudget",
    "TreeBudget",
    "WebAddress",
    "answer_external",
    "audit_stats",
    "audit_view",
    "check_offer",
    "cost_of",
    "covers",
    "decode_blob",
    "decode_request",
    "describe_grant",
    "find_offers",
    "folder_coverage",
    "grant_description",
    "grant_for",
    "left_in_tree",
    "limits_of_tree",
    "list_external_requests",
    "open_tree_budget",
    "own_endpoints",
    "published_address",
    "record_added_folders",
    "session_link",
    "share_of",
    "signal_holder",
    "time_limit",
    "write_first_answer",
]
