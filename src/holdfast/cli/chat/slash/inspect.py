"""Slash commands to inspect a session: log, budget, cost and decisions."""

import shlex

from holdfast.cli.approvals.text import describe_cost
from holdfast.cli.chat.modes import LABELS
from holdfast.cli.chat.slash.contract import ChatContext, check_ready
from holdfast.cli.option_types import budget_increase, budget_lines
from holdfast.cli.terminal.status_line import remaining_limits, short
from holdfast.core import Nonconverged, escape_invisible, pluralize
from holdfast.core.errors import InvalidInput

LOG_LINES = 100
"""As many lines as most terminals keep; `/logs all` shows the others."""


async def logs(chat: ChatContext, rest: str) -> None:
    """Show the log, one event per line."""
    lines = chat.log.lines()
    shown = lines if rest == "all" else lines[-LOG_LINES:]
    if left_out := len(lines) - len(shown):
        chat.screen.say(f"  {pluralize(left_out, 'line')} omitted; show them with /logs all", "dim")
    for line in shown:
        chat.screen.say(f"  {line}", folds=True)
    if not lines:
        chat.screen.say("  the log is empty")


async def reveal(chat: ChatContext, rest: str) -> None:
    """List what the model knows by name only, or let it read one of them."""
    if not rest:
        hidden = chat.session.hidden_outputs()
        for name, level in hidden.items():
            chat.screen.say(f"  {name}  words of a {level}; /reveal {name} shows them to the model")
        if not hidden:
            chat.screen.say("  nothing is kept from the model")
        return
    await check_ready(chat)
    revealed = await chat.session.reveal(rest, transport=chat.name)
    chat.screen.say(
        f"  the model may read {revealed.output}, which has words of a {revealed.level}; what it writes from now on may ask",
        "ask",
        folds=True,
    )


async def budget(chat: ChatContext, rest: str) -> None:
    """Show limits and spending; `add` raises limits, and a turn that ran out resumes."""
    budget = chat.session.budget
    verb, *amounts = rest.split() or ["show"]
    if verb == "add":
        turns = chat.session.history()
        last = turns[-1].outcome if turns else None
        stopped_by = last.dimension if isinstance(last, Nonconverged) and last.reason == "budget" else ""
        added = budget_increase(amounts, budget.limits, command="/budget", stopped_by=stopped_by)
        await chat.session.raise_budget(budget.limits.raised(added), added=added)
        chat.resume()
    elif verb != "show":
        raise InvalidInput(f"/budget has no {verb!r}", hint="/budget, or /budget add usd=1 tokens=50k")
    for line in budget_lines(budget.spent, budget.limits).values():
        chat.screen.say(f"  {line}")


async def status(chat: ChatContext, rest: str) -> None:
    """Show what the session does, where its programs run, and which run in the background."""
    session = chat.session
    chat.screen.say(
        f"  {session.activity}, {pluralize(len(session.history()), 'turn')}, {escape_invisible(session.status.model)}",
        folds=True,
    )
    chat.screen.say(f"  mode:     {LABELS[chat.modes.mode]}")
    chat.screen.say(f"  context:  {_context(chat)}")
    chat.screen.say(f"  cost:     {describe_cost(session)}", folds=True)
    files = ", ".join(map(escape_invisible, session.instruction_files))
    chat.screen.say(f"  follows:  {files or 'no instructions of the project'}", folds=True)
    chat.screen.say(f"  limits:   {', '.join(remaining_limits(session)) or 'none'}", folds=True)
    chat.screen.say(f"  waiting:  {', '.join(_waiting(chat)) or 'nothing'}", folds=True)
    sandbox = session.sandbox_status
    where = "none" if sandbox.tier == "none" else f"{sandbox.tier} sandbox"
    chat.screen.say(f"  programs: {where}")
    for each in session.processes():
        state = "running" if each.is_running else "ended"
        ports = f", port {', '.join(map(str, each.ports))}" if each.ports else ""
        name = escape_invisible(f"{each.name}: {shlex.join(each.argv)}")
        chat.screen.say(f"  {each.id} {state}{ports}  {name}", folds=True)


def _context(chat: ChatContext) -> str:
    from holdfast.models import price

    used = chat.activity.context_tokens
    if not used:
        return "unknown until the model replies"
    found = price(chat.session.status.model)
    if found is None or not found.context_tokens:
        return f"{short(used)} tokens"
    return f"{short(used)} of {short(found.context_tokens)} tokens ({100 * used // found.context_tokens}%)"


def _waiting(chat: ChatContext) -> list[str]:
    counts = (
        (len(chat.session.escalations()), "call", "/approve, /deny"),
        (len(chat.session.staged_paths()), "staged change", "/diff, /commit"),
        (len(chat.queue), "queued message", "sent when this turn ends"),
    )
    return [f"{pluralize(count, what)} ({how})" for count, what, how in counts if count]


async def preview(chat: ChatContext, rest: str) -> None:
    """Let your browser reach a server that the agent runs."""
    port, _, at = rest.partition(" ")
    if not port.isdigit() or (at and not at.isdigit()):
        raise InvalidInput(
            "no port given", hint="/preview 8000, or /preview 8000 9000 for a port of your choice"
        )
    here = await chat.session.preview(int(port), at=int(at or 0))
    chat.screen.say(f"  http://127.0.0.1:{here}/ leads to port {port} of the sandbox until it closes")


async def cost(chat: ChatContext, rest: str) -> None:
    """Show spending in one line."""
    chat.screen.say(f"  {describe_cost(chat.session)}")


async def why(chat: ChatContext, rest: str) -> None:
    """Explain the decision about a call."""
    from holdfast.cli.commands.why import explain

    entries = chat.session.audit()
    wanted = [entry for entry in entries if entry.call == rest] if rest else entries[-1:]
    if not wanted:
        raise InvalidInput("there is no such call", hint="/logs shows the call numbers")
    for line in explain(wanted[0]):
        chat.screen.say(f"  {line}", folds=True)


async def unfold(chat: ChatContext, rest: str) -> None:
    """Print the newest folded text."""
    chat.folded.unfold()
