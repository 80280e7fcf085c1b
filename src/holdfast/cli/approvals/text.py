"""The text of an approval question: the effect, the exact call, the reason, and the possible answers."""

import difflib
import re
from collections.abc import Sequence

from holdfast.core import (
    Call,
    CommandTarget,
    Escalation,
    PathTarget,
    Role,
    Scope,
    Target,
    UrlTarget,
    describe_coverage,
    encode,
    escape_invisible,
    escape_to_one_line,
    format_age,
    is_question,
    mark_lookalikes,
    pluralize,
    runs_when,
)
from holdfast.core.errors import HoldfastError
from holdfast.gate import MAX_AMOUNT
from holdfast.session import ASK_PERSON, Session

MAX_LINES = 12
"""So that the question fits a screen of 24 lines."""
MAX_LINE_CHARACTERS = 500
MAX_DIFF_CHARACTERS = 500_000
MAX_DIFF_LINES = 5_000
"""A larger file is shown as it would be written, because comparing it takes too long."""
MINUTES = 10
_ROLE_VERBS: dict[Role, str] = {
    "read-path": "read",
    "write-path": "write",
    "delete-path": "delete",
    "write-history": "change the Git history of",
    "delete-history": "delete the Git history of",
    "fetch-url": "fetch",
    "git-remote-url": "connect to",
}
_LENGTHS: tuple[tuple[str, Scope, str], ...] = (
    ("t", "turn", "this turn"),
    ("n", "times", "a number of times"),
    ("m", "minutes", f"{MINUTES} minutes"),
    ("s", "session", "this session"),
    ("w", "always", "always, in every session"),
)


def describe_effect(escalation: Escalation) -> str:
    """The effect in words, from the resolved targets."""
    call = escalation.call
    if is_question(escalation):
        return "The agent asks you a question"
    effects = [
        f"{_ROLE_VERBS[target.role]} {_name(target)}"
        for target in escalation.targets
        if target.role in _ROLE_VERBS
    ]
    if not effects:
        return f"The agent wants to call {escape_to_one_line(call.operation)}"
    return f"The agent wants to {' and '.join(dict.fromkeys(effects))}{_describe_runs(escalation)}"


def runs_of(escalation: Escalation) -> list[str]:
    """What makes the files run that the call would change, as in "this runs when you ..."."""
    changed = [
        target.location.inside or target.location.real
        for target in escalation.targets
        if isinstance(target, PathTarget) and target.role == "write-path"
    ]
    return list(dict.fromkeys(when for path in changed if (when := runs_when(path)) is not None))


def _describe_runs(escalation: Escalation) -> str:
    found = runs_of(escalation)
    return f" (this runs when you {', or '.join(found)})" if found else ""


def exact_call(call: Call, session: Session | None = None) -> list[str]:
    """The exact call: a diff where a file would be written, else the arguments."""
    return [_visible(line) for line in call_lines(call, session)]


def call_lines(call: Call, session: Session | None = None) -> list[str]:
    """The lines of the exact call, not escaped: what is not shown does not need to be."""
    if call.operation == ASK_PERSON.name:
        return str(call.arguments.get("question", "")).split("\n")
    lines = [call.operation.replace("\n", "<U+000A>")]
    for name, value in call.arguments.items():
        shown = value if isinstance(value, str) else encode(value).decode()
        first, *rest = shown.split("\n")
        lines += ["  {}: {}".format(name.replace("\n", "<U+000A>"), first), *(f"    {line}" for line in rest)]
    diff = _diff(call, session)
    return lines if diff is None else [*lines[:2], *(f"  {line}" for line in diff)]


def fit_lines(lines: Sequence[str], room: int = MAX_LINES) -> tuple[list[str], bool]:
    """The lines that fit, cut and then escaped, and whether these are all."""
    is_whole = len(lines) <= room and all(len(line) <= MAX_LINE_CHARACTERS for line in lines)
    kept = [
        _visible(line) if len(line) <= MAX_LINE_CHARACTERS else f"{_visible(line[:MAX_LINE_CHARACTERS])} ..."
        for line in lines[:room]
    ]
    if is_whole:
        return kept, True
    return [
        *kept,
        f"... {pluralize(len(lines), 'line')} in total, too long to show here (v shows everything)",
    ], False


def describe_reason(escalation: Escalation) -> str:
    """The reason, the rule and its source."""
    decision = escalation.decision
    return f"{escape_invisible(decision.reason)} (rule {escape_invisible(decision.rule)}, {escape_invisible(decision.source or 'built-in')})"


def describe_provenance(escalation: Escalation) -> str:
    """The origin of the values in the call."""
    labels = escalation.call.labels
    if not labels:
        return f"the agent itself, in turn {escalation.call.turn}; they do not appear in earlier input"
    return "; ".join(
        escape_to_one_line(label.source) + ("" if label.is_trusted else " (not your words)")
        for label in labels
    )


def seconds_left(escalation: Escalation, now_ms: int) -> float | None:
    """How long a call still waits before silence is a denial; None if it waits until it is answered."""
    return None if escalation.expires_ms is None else max(0.0, (escalation.expires_ms - now_ms) / 1000)


def describe_wait(escalation: Escalation, now_ms: int) -> str:
    """How long a call has waited, and how long it will."""
    age = format_age(max(0, now_ms - escalation.opened_ms))
    left = seconds_left(escalation, now_ms)
    return f"waits since {age}, " + (
        "until you answer" if left is None else f"{format_age(round(left * 1000))} left"
    )


def describe_offers(escalation: Escalation) -> list[str]:
    """One line for each offer: its number, what it covers, and how many of the last calls it would have covered."""
    return [
        f"{number}  {escape_invisible(describe_coverage(each.coverage))} "
        f"({each.covered_calls} of the last {pluralize(each.counted_calls, 'call')})"
        for number, each in enumerate(escalation.offers, 1)
    ]


def describe_undo(escalation: Escalation) -> str:
    """Whether the effect can be undone."""
    targets = escalation.targets
    if escalation.decision.is_staged:
        return "yes: it becomes a proposal, which you commit or reject"
    if targets and all(target.role == "read-path" for target in targets):
        return "it changes nothing, but the agent will know the content"
    if targets and all(_is_restorable(target) for target in targets):
        return "yes: /rewind restores the files"
    return "no"


def _is_restorable(target: Target) -> bool:
    """Whether a restore point undoes what happens to a target, whichever tool does it."""
    is_file = target.role in ("read-path", "write-path", "delete-path")
    return is_file and isinstance(target, PathTarget) and target.location.inside is not None


def describe_cost(session: Session) -> str:
    """What the session has spent so far."""
    spent = session.budget.spent
    cost = "cost unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    return f"{spent.tokens:,} tokens, {cost}, {pluralize(spent.calls, 'call')}"


def choices(escalation: Escalation, *, is_whole: bool, is_edited: bool) -> list[tuple[str, str]]:
    """The possible answers by key. A call must be seen in full before it can be approved."""
    if is_question(escalation):
        return [("y", "answer"), ("n", "do not answer")]
    no = [("n", "deny"), ("r", "deny with a reason"), ("e", "edit")]
    if not is_whole:
        return [("v", "view everything, to approve it"), *no, ("?", "help")]
    more = [("a", "more")] if escalation.offers and not is_edited else []
    return [("y", "approve once"), *more, *no, ("?", "help")]


HELP = (
    "y approves this one call; a offers approvals that also cover later calls",
    "n denies it; r denies it with a reason, which the agent reads as you write it",
    "e opens the arguments in $EDITOR; what you save is judged again and shown to you",
    "v shows a long call in full; it cannot be approved before that",
    "/approve and /deny REASON work too, and every other /command",
)
"""What each key does."""


def lengths() -> list[tuple[str, str]]:
    """How long a saved approval can last, by key."""
    return [(key, words) for key, _, words in _LENGTHS]


def scope_of(key: str) -> Scope:
    """The length that a key stands for."""
    return next(scope for known, scope, _ in _LENGTHS if known == key)


def parse_amount(text: str) -> int | None:
    """A number of times or minutes; None if the text is not a valid one."""
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    return number if 1 <= number <= MAX_AMOUNT else None


def _name(target: Target) -> str:
    match target:
        case PathTarget():
            return _visible(target.location.real or target.location.given)
        case UrlTarget():
            return _visible(target.given)
        case CommandTarget():
            return _visible(target.text)
        case _:
            return _visible(target.value)


def _visible(text: str) -> str:
    """Text in an approval: nothing in it is invisible, and no letter passes for another."""
    return mark_lookalikes(escape_to_one_line(text))


def _diff(call: Call, session: Session | None) -> list[str] | None:
    path, content = call.arguments.get("path"), call.arguments.get("content")
    if (
        session is None
        or call.operation != "world.write"
        or not isinstance(path, str)
        or not isinstance(content, str)
        or len(content) > MAX_DIFF_CHARACTERS
    ):
        return None
    try:
        name = session.workspace.resolve(path)
        if session.workspace.exists(name) and session.workspace.stat(name).size > MAX_DIFF_CHARACTERS:
            return None
        before = session.workspace.read(name).decode() if session.workspace.exists(name) else None
    except (OSError, HoldfastError, UnicodeDecodeError):
        return None  # the call will fail anyway; show its arguments
    old, new = [] if before is None else before.split("\n"), content.split("\n")
    if max(len(old), len(new)) > MAX_DIFF_LINES:
        return None
    return list(
        difflib.unified_diff(
            old, new, "current" if before is not None else "new file", "proposed", lineterm=""
        )
    )
