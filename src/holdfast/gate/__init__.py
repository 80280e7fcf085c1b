"""The gate: judge, ask, record, charge, perform, record. Escalations, grants, budget and the audit view live here."""

from holdfast.gate.audit import AuditEntry, AuditStats, audit_stats, audit_view
from holdfast.gate.audit_file import AuditFile
from holdfast.gate.budget import Budget, Reservation, Spending, cost_of
from holdfast.gate.calls import Calls
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.foreign_requests import ForeignRequest, answer_foreign, requests_in
from holdfast.gate.gate import Gate, GateSettings
from holdfast.gate.grant_book import GrantBook
from holdfast.gate.grant_words import describe_grant, standing_rule
from holdfast.gate.grants import Grants, covers, grant_for
from holdfast.gate.inbox import Inbox, RaiseBudget, RevokeGrant
from holdfast.gate.loops import Loops
from holdfast.gate.purse import Purse, Share, limits_of_tree, share_of
from holdfast.gate.rendezvous import MOST_AMOUNT, Rendezvous
from holdfast.gate.results import Results
from holdfast.gate.tree import Tree, TreeBudget
from holdfast.gate.worktime import within_time

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
    "requests_in",
    "share_of",
    "standing_rule",
    "within_time",
]
