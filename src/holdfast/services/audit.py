"""The audit view of a session as a table for spreadsheets."""

import csv
import io
from collections.abc import Callable, Iterable

from holdfast.core import encode, escape_invisible
from holdfast.gate import AuditEntry

_COLUMNS: dict[str, Callable[[AuditEntry], object]] = {
    "call": lambda entry: entry.call,
    "turn": lambda entry: entry.turn,
    "at_ms": lambda entry: entry.at_ms,
    "operation": lambda entry: entry.operation,
    "arguments": lambda entry: encode(entry.arguments).decode(),
    "verdict": lambda entry: entry.decision.verdict,
    "rule": lambda entry: entry.decision.rule,
    "reason": lambda entry: entry.decision.reason,
    "result": lambda entry: entry.result,
    "error": lambda entry: entry.error,
    "grant": lambda entry: entry.grant or "",
    "approver": lambda entry: entry.approver or "",
    "transport": lambda entry: entry.transport,
    "tokens": lambda entry: entry.tokens,
    "duration_ms": lambda entry: entry.duration_ms,
}


def audit_csv(entries: Iterable[AuditEntry]) -> str:
    """One row per call, as comma-separated values with a header."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    writer.writerows([_cell(column(entry)) for column in _COLUMNS.values()] for entry in entries)
    return text.getvalue()


def _cell(value: object) -> object:
    """A value that no spreadsheet takes for a formula: the agent may have chosen names and error texts."""
    if not isinstance(value, str):
        return value
    text = escape_invisible(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text
