"""The gate: judge, ask, record, charge, perform, record. Escalations, grants, budget and the audit view live here."""

from holdfast.gate.approval_files import MOST_AMOUNT, ForeignRequest, Rendezvous, answer_foreign, requests_in
from holdfast.gate.audit import AuditEntry, AuditFile, AuditStats, audit_stats, audit_view
from holdfast.gate.budget import Budget, Reservation, Spending, cost_of
from holdfast.gate.call_index import Calls
from holdfast.gate.control_requests import Inbox, RaiseBudget, RevokeGrant
from holdfast.gate.deadlines import within_time
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.gate import Gate, GateSettings
from holdfast.gate.grants import Grants, covers, describe_grant, grant_for, standing_rule
from holdfast.gate.loop_detector import Loops
from holdfast.gate.output_filter import Results
from holdfast.gate.saved_grants import GrantBook
from holdfast.gate.tree_budget import Tree, TreeBudget
from holdfast.gate.tree_budget_file import Purse, Share, limits_of_tree, purse_of, share_of

__all__ = [
    "MOST_AMOUNT",
    "AuditEntry",
    "AuditFile",
    "AuditStats",
    "Budget",
    "Calls",
    "Escalations",
    "ForeignRequest",
    "Gate",
    "GateSettings",
    "GrantBook",
    "Grants",
    "Inbox",
    "Loops",
    "Purse",
    "RaiseBudget",
    "Rendezvous",
    "Reservation",
    "Results",
    "RevokeGrant",
    "Ruling",
    "Share",
    "Spending",
    "Tree",
    "TreeBudget",
    "answer_foreign",
    "audit_stats",
    "audit_view",
    "cost_of",
    "covers",
    "describe_grant",
    "grant_for",
    "limits_of_tree",
    "purse_of",
    "requests_in",
    "share_of",
    "standing_rule",
    "within_time",
]
