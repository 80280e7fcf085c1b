"""The words of an approval: what would happen, why it asks, where the values come from, whether it can be undone.

Pure functions over an escalation, for everything that asks a person: the terminal, files, MCP elicitation. Nothing in the words is
invisible, and each has a bounded length, because the exact call is shown beside them.
"""

from holdfast.core.calls import Call
from holdfast.core.coverage import describe_coverage
from holdfast.core.decisions import Escalation, Scope, is_question
from holdfast.core.executed_files import runs_when
from holdfast.core.targets import CommandTarget, PathTarget, Target, UrlTarget
from holdfast.core.text import escape_invisible, escape_to_one_line, format_age, mark_lookalikes, pluralize
from holdfast.core.tools import Role
from holdfast.core.values import encode

MAX_EFFECTS = 2
MAX_EFFECT_CELLS = 84
MAX_REASON_CELLS = 180
MAX_RULE_CELLS = 30
MAX_FILE_CELLS = 80
MAX_SOURCES = 2
MAX_ORIGIN_CELLS = 72
"""Of where an argument came from, if the policy asks."""
MAX_SOURCE_CELLS = 32
"""With these, the facts of a question fit a screen of 80 columns beside a call of twelve rows."""
SAVED_MINUTES = 10
"""How long an approval by minutes lasts, where a person chooses from a list."""
SAVED_LENGTHS: dict[Scope, str] = {
    "turn": "turn",
    "times": "N times",
    "minutes": f"{SAVED_MINUTES} minutes",
    "session": "session",
    "always": "always",
}
"""How long a saved approval can last, shortest first, in the words of every approval."""
_ROLE_VERBS: dict[Role, str] = {
    "read-path": "read",
    "write-path": "write",
    "delete-path": "delete",
    "write-history": "change the Git history of",
    "delete-history": "delete the Git history of",
    "fetch-url": "fetch",
    "git-remote-url": "connect to",
    "proxy-domain": "let a program connect to",
    "command": "run",
}


def describe_effect(escalation: Escalation) -> str:
    """The effect in words, from the resolved targets."""
    if is_question(escalation):
        return "The agent asks you a question"
    effects = list(
        dict.fromkeys(
            f"{_ROLE_VERBS[target.role]} {_name(target)}"
            for target in escalation.targets
            if target.role in _ROLE_VERBS
        )
    )
    if not effects:
        return (
            f"The agent wants to call {_cut(escape_to_one_line(escalation.call.operation), MAX_EFFECT_CELLS)}"
        )
    more = len(effects) - MAX_EFFECTS
    room = MAX_EFFECT_CELLS // min(len(effects), MAX_EFFECTS)
    shown = " and ".join(_cut(each, room) for each in effects[:MAX_EFFECTS])
    shown += f" and {more} more" if more > 0 else ""
    return f"The agent wants to {shown}{_describe_runs(escalation)}"


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


def describe_call_lines(call: Call) -> list[str]:
    """The operation and its arguments, line by line, not escaped: what is not shown does not need to be."""
    lines = [call.operation.replace("\n", "<U+000A>")]
    for name, value in call.arguments.items():
        shown = value if isinstance(value, str) else encode(value).decode()
        first, *rest = shown.split("\n")
        lines += ["  {}: {}".format(name.replace("\n", "<U+000A>"), first), *(f"    {line}" for line in rest)]
    return lines


def describe_reason(escalation: Escalation, *, file_cells: int = MAX_FILE_CELLS) -> str:
    """The reason, the rule and its source."""
    decision = escalation.decision
    rule = _cut(escape_to_one_line(decision.rule), MAX_RULE_CELLS)
    where = f" (rule {rule}, {_cut(escape_to_one_line(decision.source or 'built-in'), file_cells)})"
    room, reason = MAX_REASON_CELLS - len(where), escape_to_one_line(decision.reason)
    is_short = len(reason) * (1 if reason.isascii() else 2) <= room
    start = reason[: (room - 3) // (1 if reason.isascii() else 2)].rstrip()
    return (reason if is_short else f"{start}...") + where


def describe_provenance(escalation: Escalation) -> str:
    """The origin of the values in the call."""
    origins = _describe_levels(escalation)
    if origins:
        return "; ".join(origins)
    labels = escalation.call.labels
    if not labels:
        return f"the agent itself, in turn {escalation.call.turn}; they do not appear in earlier input"
    cells = MAX_SOURCES * MAX_SOURCE_CELLS // min(len(labels), MAX_SOURCES)
    shown = [
        _cut(escape_to_one_line(label.source), cells) + ("" if label.is_trusted else " (not your words)")
        # What is not the person's own comes first, because only some sources fit.
        for label in sorted(labels, key=lambda label: label.is_trusted)[:MAX_SOURCES]
    ]
    more = [f"{len(labels) - MAX_SOURCES} more"] if len(labels) > MAX_SOURCES else []
    return "; ".join([*shown, *more])


def _describe_levels(escalation: Escalation) -> list[str]:
    """Where each argument below `own` came from, if the policy asks."""
    levels = escalation.decision.facts.levels if escalation.decision.facts is not None else None
    if levels is None:
        return []
    names: dict[tuple[str, str], list[str]] = {}
    for name in levels.arguments:
        names.setdefault((levels.source_of(name), levels.standing_of(name)), []).append(name)
    found = [
        f"{_cut(escape_to_one_line(', '.join(together)), MAX_SOURCE_CELLS)}: "
        f"{_cut(escape_to_one_line(source), MAX_ORIGIN_CELLS)} ({standing})"
        for (source, standing), together in list(names.items())[:MAX_SOURCES]
    ]
    if more := sum(map(len, list(names.values())[MAX_SOURCES:])):
        found.append(f"{pluralize(more, 'more argument')} that {'is' if more == 1 else 'are'} not yours")
    if levels.author != "own" and not found:
        found.append(f"written after words of a {levels.author} were shown")
    if levels.carries_secret:
        found.append("it carries something secret")
    return found


def describe_undo(escalation: Escalation) -> str:
    """Whether the effect can be undone."""
    targets = escalation.targets
    if escalation.decision.is_staged:
        return "yes: it becomes a proposal, which you commit or reject"
    if targets and all(target.role == "read-path" for target in targets):
        return "it changes nothing, but the agent will know the content"
    if targets and all(_is_restorable(target) for target in targets):
        return "yes: a rewind restores the files"
    return "no"


def _is_restorable(target: Target) -> bool:
    """Whether a restore point undoes what happens to a target, whichever tool does it."""
    is_file = target.role in ("read-path", "write-path", "delete-path")
    return is_file and isinstance(target, PathTarget) and target.location.inside is not None


def describe_facts(escalation: Escalation, *, columns: int | None = None) -> list[str]:
    """Why the call asks, where its values come from, and whether it can be undone.

    On a screen, the name of a file takes at most one row beside the labels.
    """
    file_cells = MAX_FILE_CELLS if columns is None else min(MAX_FILE_CELLS, max(20, columns - 22))
    return [
        f"reason:        {describe_reason(escalation, file_cells=file_cells)}",
        f"values from:   {describe_provenance(escalation)}",
        f"can be undone: {describe_undo(escalation)}",
    ]


def describe_time_left(escalation: Escalation, now_ms: int) -> list[str]:
    """How long there is to answer, if there is a limit."""
    left = seconds_left(escalation, now_ms)
    return [] if left is None else [f"time left:     {format_age(round(left * 1000))}, then it is denied"]


def seconds_left(escalation: Escalation, now_ms: int) -> float | None:
    """How long a call still waits before silence is a denial; None if it waits until it is answered."""
    return None if escalation.expires_ms is None else max(0.0, (escalation.expires_ms - now_ms) / 1000)


def describe_wait(escalation: Escalation, now_ms: int) -> str:
    """How long a call has waited, and how long it will."""
    age = format_age(max(0, now_ms - escalation.opened_ms))
    left = seconds_left(escalation, now_ms)
    return f"has waited {age}, " + (
        "until you answer" if left is None else f"{format_age(round(left * 1000))} left"
    )


def describe_offers(escalation: Escalation) -> list[str]:
    """What each offer covers, and how many of the last calls or connections it would have covered."""
    counted = "connection" if _is_connection(escalation) else "call"
    return [
        escape_invisible(describe_coverage(each.coverage))
        + (
            f" (would have covered {each.covered_calls} of the last {pluralize(each.counted_calls, counted)})"
            if each.counted_calls
            else ""
        )
        for each in escalation.offers
    ]


def _is_connection(escalation: Escalation) -> bool:
    return any(target.role == "proxy-domain" for target in escalation.targets)


def visible(text: str) -> str:
    """Text in an approval: nothing in it is invisible, and no letter passes for another."""
    return mark_lookalikes(escape_to_one_line(text))


def _name(target: Target) -> str:
    match target:
        case PathTarget():
            name = target.location.real or target.location.given
        case UrlTarget():
            name = target.given
        case CommandTarget() if target.is_opaque:
            return "a script that cannot be analysed"
        case CommandTarget():
            name = target.text
        case _:
            name = target.value
    # What will not be shown is not worth escaping.
    return visible(_cut(name, 10 * MAX_EFFECT_CELLS))


def _cut(text: str, cells: int) -> str:
    """The text, without its middle if it would fill more cells than these; letters that are not ASCII may fill two."""
    if len(text) * (1 if text.isascii() else 2) <= cells:
        return text
    half = (cells - 3) // (2 if text.isascii() else 4)
    return f"{text[:half]}...{text[-half:]}"
