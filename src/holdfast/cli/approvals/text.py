"""What a person is shown before they decide: what would happen, the exact call, why it asks, and what they may say."""

import difflib
import re
from collections.abc import Sequence

from holdfast.core import (
    Call,
    Escalation,
    Json,
    PathTarget,
    Response,
    Role,
    Scope,
    Target,
    UrlTarget,
    encode,
    escape_invisible,
    escape_to_one_line,
    pluralize,
)
from holdfast.core.errors import HoldfastError
from holdfast.gate import MAX_AMOUNT, grant_description
from holdfast.session import ASK_PERSON, Session

MAX_LINES = 40
MAX_LINE_CHARACTERS = 500
MINUTES = 10
_ROLE_VERBS: dict[Role, str] = {
    "read-path": "read",
    "write-path": "write",
    "delete-path": "delete",
    "write-history": "change the history of",
    "delete-history": "delete the history of",
    "fetch-url": "fetch",
    "git-remote-url": "talk to",
}
_SCOPES: tuple[tuple[str, Scope, str], ...] = (
    ("1", "once", "yes, once"),
    ("2", "turn", "yes, in this turn"),
    ("3", "minutes", f"yes, for {MINUTES} minutes"),
    ("4", "session", "yes, in this session"),
    ("5", "always", "yes, always, in every session"),
    ("0", "times", "yes, so many times"),
)
GRANT_DIGITS = frozenset(digit for digit, scope, _ in _SCOPES if scope != "once")
"""The digits for a yes that covers more than this call."""


def is_question(escalation: Escalation) -> bool:
    """Whether the agent wants words of the person, and not a yes."""
    return escalation.call.operation == ASK_PERSON.name


def describe_effect(escalation: Escalation) -> str:
    """The effect in words, from what the arguments were resolved to."""
    call = escalation.call
    if is_question(escalation):
        return "The agent asks you a question"
    deeds = [
        f"{_ROLE_VERBS[target.role]} {_name(target)}"
        for target in escalation.targets
        if target.role in _ROLE_VERBS
    ]
    if not deeds:
        return f"The agent wants to call {escape_to_one_line(call.operation)}"
    return f"The agent wants to {' and '.join(dict.fromkeys(deeds))}"


def exact_call(call: Call, session: Session | None = None) -> list[str]:
    """The call as it would be made: a diff where a file would be written, else the arguments."""
    if call.operation == ASK_PERSON.name:
        return escape_invisible(str(call.arguments.get("question", ""))).splitlines()
    lines = [escape_to_one_line(call.operation)]
    for name, value in call.arguments.items():
        shown = value if isinstance(value, str) else encode(value).decode()
        first, *rest = escape_invisible(shown).split("\n")
        lines += [f"  {escape_to_one_line(name)}: {first}", *(f"    {line}" for line in rest)]
    diff = _diff(call, session)
    return lines if diff is None else [*lines[:2], *(f"  {line}" for line in diff)]


def fit_lines(lines: Sequence[str], room: int = MAX_LINES) -> tuple[list[str], bool]:
    """As much as there is room for, and whether that is all of it."""
    is_whole = len(lines) <= room and all(len(line) <= MAX_LINE_CHARACTERS for line in lines)
    if is_whole:
        return list(lines), True
    kept = [
        line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]} ..."
        for line in lines[:room]
    ]
    return [
        *kept,
        f"... {pluralize(len(lines), 'line')} in all, too long to show here (9 shows all of it)",
    ], False


def describe_reason(escalation: Escalation) -> str:
    """The reason, the rule and where it stands."""
    decision = escalation.decision
    return f"{escape_invisible(decision.reason)} (rule {escape_invisible(decision.rule)}, {escape_invisible(decision.source or 'built-in')})"


def describe_provenance(escalation: Escalation) -> str:
    """Where the values in the call came from."""
    labels = escalation.call.labels
    if not labels:
        return f"the agent itself, in turn {escalation.call.turn}: nothing of it was said or read before"
    return "; ".join(
        escape_to_one_line(label.source) + ("" if label.is_trusted else " (not your words)")
        for label in labels
    )


def describe_undo(escalation: Escalation) -> str:
    """Whether a yes can be taken back afterwards."""
    targets = escalation.targets
    if escalation.decision.is_staged:
        return "yes: it only becomes a proposal, which you commit or reject"
    if targets and all(target.role == "read-path" for target in targets):
        return "it changes nothing, but what was read cannot be unread"
    is_ours = escalation.call.operation.startswith("world.")
    if (
        is_ours
        and targets
        and all(isinstance(t, PathTarget) and t.location.inside is not None for t in targets)
    ):
        return "yes: /rewind brings the files back"
    return "no: Holdfast cannot take it back"


def describe_cost(session: Session) -> str:
    """What the session has spent."""
    spent = session.budget.spent
    cost = "cost unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    return f"{spent.tokens:,} tokens, {cost}, {pluralize(spent.calls, 'call')}"


def choices(escalation: Escalation, *, is_whole: bool, is_edited: bool) -> list[tuple[str, str]]:
    """What may be chosen by which digit. What could not be shown in full cannot be allowed for always."""
    if is_question(escalation):
        return [("1", "answer"), ("6", "do not answer")]
    can_stand = not is_edited and bool(grant_description(escalation))
    yes = [
        (digit, words)
        for digit, scope, words in _SCOPES
        if scope == "once" or (can_stand and (scope != "always" or is_whole))
    ]
    no = [("6", "no"), ("7", "no, and tell it why"), ("8", "edit the arguments")]
    return [*yes, *no] if is_whole else [*yes, *no, ("9", "show all of it")]


def response_for_digit(digit: str, arguments: dict[str, Json] | None) -> Response:
    """The answer behind a digit from 1 to 5."""
    scope = next(scope for key, scope, _ in _SCOPES if key == digit)
    amount = MINUTES if scope == "minutes" else None
    return Response(verdict="approve", scope=scope, amount=amount, arguments=arguments)


def parse_amount(text: str) -> int | None:
    """How many times or minutes a yes is for; None where the text does not say."""
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    return number if 1 <= number <= MAX_AMOUNT else None


def _name(target: Target) -> str:
    match target:
        case PathTarget():
            return escape_to_one_line(target.location.real or target.location.given)
        case UrlTarget():
            return escape_to_one_line(target.given)
        case _:
            return escape_to_one_line(target.value)


def _diff(call: Call, session: Session | None) -> list[str] | None:
    path, content = call.arguments.get("path"), call.arguments.get("content")
    if (
        session is None
        or call.operation != "world.write"
        or not isinstance(path, str)
        or not isinstance(content, str)
    ):
        return None
    try:
        name = session.workspace.resolve(path)
        before = session.workspace.read(name).decode() if session.workspace.exists(name) else ""
    except (OSError, HoldfastError, UnicodeDecodeError):
        return None  # whatever is wrong with the path, the arguments are shown as they are
    changed = difflib.unified_diff(
        before.split("\n"), content.split("\n"), "as it is", "as it would be", lineterm=""
    )
    return [escape_invisible(line) for line in changed]
