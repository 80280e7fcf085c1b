"""The gate: judge, ask, record, charge, perform, record. Escalations, grants, budget and the audit view live here."""

from holdfast.gate.audit import AuditEntry, audit_view
from holdfast.gate.budget import Budget, Reservation
from holdfast.gate.calls import Calls
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.gate import Gate, GateSettings
from holdfast.gate.grants import Grants, grant_for
from holdfast.gate.results import Results

__all__ = [
    "AuditEntry",
    "Budget",
    "Calls",
    "Escalations",
    "Gate",
    "GateSettings",
    "Grants",
    "Reservation",
    "Results",
    "Ruling",
    "audit_view",
    "grant_for",
]
