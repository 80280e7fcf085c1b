"""Explain in a few lines why a call was allowed, denied, escalated or staged.

holdfast why 3.2                  call 2 of turn 3 of the newest session
holdfast why 3.2 --session NAME
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.narrator import describe_call
from holdfast.core import Call, escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.gate import AuditEntry, audit_view

PROGRESS = "reading the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("call", help="turn.number, as in `holdfast audit`")
    parser.add_argument("--session", help="id, prefix, last four characters or name (default: the newest)")
    parser.add_argument("--json", action="store_true", help="print the whole audit entry as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Find the call and explain its decision."""
    console = Console()
    async with open_store(only_reads=True) as (_, store):
        recorded = await store.read(await resolve_session(store, arguments.session))
    entry = next((each for each in audit_view(recorded) if each.call == arguments.call), None)
    if entry is None:
        raise InvalidInput(
            f"there is no call {arguments.call!r} in this session", hint="list the calls with: holdfast audit"
        )
    if arguments.json:
        console.json(entry)
    else:
        for line in explain(entry):
            console.show(line, folds=True)
    return exit_codes.OK


def explain(entry: AuditEntry) -> list[str]:
    """The call and its result, the decision and its reason, and who approved or denied it."""
    decision = entry.decision
    call = Call(id=entry.call, operation=entry.operation, arguments=entry.arguments)
    lines = [
        f"{describe_call(call)}: {entry.result}",
        f"{decision.verdict} by rule {decision.rule} ({decision.source or 'built-in'}): {decision.reason}",
    ]
    levels = decision.facts.levels if decision.facts is not None else None
    if levels is not None and (levels.arguments or levels.author != "own"):
        origins = [
            f"{name}: {levels.source_of(name)} ({levels.standing_of(name)})" for name in levels.arguments
        ]
        lines.append("; ".join([f"author: {levels.author}", *origins]))
    if entry.response is not None:
        verdict = "approved" if entry.response.verdict == "approve" else "denied"
        why = f": {entry.response.reason}" if entry.response.reason else ""
        lines.append(f"{entry.approver} {verdict} it ({entry.response.scope}) by {entry.transport}{why}")
    elif entry.grant is not None:
        giver = f"given by {entry.approver}" if entry.approver is not None else "given in another session"
        lines.append(
            f"a saved approval covers it (grant {entry.grant}, {giver}); list them with: holdfast grants"
        )
    elif entry.error:
        lines.append(entry.error)
    return [escape_invisible(" ".join(line.split("\n"))) for line in lines]
