"""Routes of the record: timeline, audit, usage, and the checks of this machine."""

from contextlib import aclosing

from holdfast.core import Value
from holdfast.core.errors import InvalidInput
from holdfast.gate import AuditEntry, audit_view
from holdfast.services import (
    USAGE_GROUPS,
    CheckResult,
    TimelineEntry,
    UsageRow,
    audit_csv,
    run_checks,
    timeline_of,
    total_usage,
    usage,
)
from holdfast.web.context import WebRequest
from holdfast.web.route import get

DAY_MS = 24 * 60 * 60 * 1000


class UsageReport(Value, omit_defaults=False):
    """Usage by day, model, folder, team or session, as `holdfast usage --json` prints it."""

    by: str
    days: int
    rows: tuple[UsageRow, ...]
    total: UsageRow


async def show_timeline(request: WebRequest) -> tuple[TimelineEntry, ...]:
    """The timeline of a session."""
    return timeline_of(await request.context.store.read(request.session)).entries


async def show_audit(request: WebRequest) -> list[AuditEntry]:
    """Every call of a session with its decision and result."""
    recorded = await request.context.store.read(request.session)
    return audit_view(recorded)


async def export_audit(request: WebRequest) -> str:
    """The audit of a session as comma-separated values."""
    return audit_csv(await show_audit(request))


async def show_usage(request: WebRequest) -> UsageReport:
    """Cost, tokens, calls and prompts."""
    by, days = request.query.get("by", "day"), request.number("days", 30)
    group = next((each for each in USAGE_GROUPS if each == by), None)
    if group is None:
        raise InvalidInput(f"{by!r} is not a group", hint=f"use {', '.join(USAGE_GROUPS)}")
    context = request.context
    since_ms = context.clock.now_ms() - days * DAY_MS
    rows = await usage(context.store, by=group, since_ms=since_ms)
    return UsageReport(by=by, days=days, rows=rows, total=total_usage(rows))


async def show_doctor(request: WebRequest) -> list[CheckResult]:
    """The checks of this machine, as `holdfast doctor --json` prints them."""
    async with aclosing(run_checks(request.context.home)) as checks:
        return [result async for result in checks]


ROUTES = (
    get(
        "/api/sessions/{session}/timeline",
        show_timeline,
        tuple[TimelineEntry, ...],
        "The timeline, as `holdfast timeline --json` prints it",
    ),
    get(
        "/api/sessions/{session}/audit",
        show_audit,
        list[AuditEntry],
        "Every call, as `holdfast audit --json` prints it",
    ),
    get("/api/sessions/{session}/audit.csv", export_audit, str, "The same as comma-separated values"),
    get(
        "/api/usage",
        show_usage,
        UsageReport,
        "Usage, as `holdfast usage --json` prints it",
        query=("by", "days"),
    ),
    get(
        "/api/doctor",
        show_doctor,
        list[CheckResult],
        "The checks of this machine, as `holdfast doctor --json` prints them",
    ),
)
