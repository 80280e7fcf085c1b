"""The narrator: tells what happens in a session, line by line, from its events. Plain text; colour adds nothing."""

import textwrap
from collections.abc import Callable
from typing import assert_never

from holdfast.cli.terminal.console import Tone, visible
from holdfast.core import Call, Decision, Verdict, budget_word, escape_to_one_line, restricts
from holdfast.core.events import (
    BudgetWarned,
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    ModelReplied,
    Noted,
    ProposalsCommitted,
    ProposalsRejected,
    RecordedEvent,
    RunEnded,
    RunStarted,
)

Say = Callable[[str, Tone], None]

_WORDS_WIDTH = 70
"""Of what the model says, beside its name, on a terminal of 80."""


class Narrator:
    """Says each event above a number in at most a few lines."""

    def __init__(self, say: Say, *, after: int = 0, shows_code: bool = False) -> None:
        self._say = say
        self._after = after
        self._shows_code = shows_code
        self._call_error = ""

    def __call__(self, entry: RecordedEvent) -> None:
        if entry.seq > self._after:
            self._tell(entry)

    def _tell(self, entry: RecordedEvent) -> None:
        match event := entry.event:
            case ModelReplied() if self._shows_code and event.message.text.strip():
                self._say(_wrapped("model", visible(event.message.text.strip())), "plain")
            case RunStarted() if self._shows_code:
                self._say(f"        writes Python, runs in the {event.engine} sandbox:", "dim")
                for line in visible(event.code.strip()).splitlines():
                    self._say(f"          | {line}", "dim")
            case CallIntended() if event.escalation is not None or event.grant is not None:
                leave = "your yes" if event.escalation is not None else "a grant of yours"
                self._say(f"  allow   {describe(event.call)} (by {leave})", "good")
            case CallIntended():
                self._judged(event.decision, event.call)
            case CallRefused():
                self._judged(event.decision, event.call)
            case CallSettled():
                self._call_error = event.error
                if event.status != "ok":
                    self._say(f"  {event.status:<8}{visible(event.error)}", "bad")
            case EscalationOpened():
                self._judged(event.escalation.decision, event.escalation.call)
            case EscalationAnswered():
                said = "yes" if event.response.verdict == "approve" else "no"
                self._say(
                    f"  answer  {said} ({event.response.scope}), by {event.transport}",
                    "ask",
                )
            case EscalationExpired():
                self._say(f"  answer  none: {event.reason}", "ask")
            case RunEnded() if event.status != "ok":
                # A call that fails mostly fails its run too: the same words are said once.
                if (why := why_it_ended(event)) != self._call_error:
                    self._say(f"  {event.status:<8}{visible(why)}", "bad")
                self._call_error = ""
            case RunEnded() if self._shows_code and event.printed.strip():
                for line in visible(event.printed.rstrip()).splitlines():
                    self._say(f"          > {line}", "dim")
            case ProposalsCommitted():
                self._say(f"  commit  {', '.join(change.path for change in event.changes)}", "good")
            case ProposalsRejected():
                self._say(f"  reject  {', '.join(event.paths)}", "ask")
            case BudgetWarned():
                self._say(
                    f"  budget  {budget_word(event.dimension)}: {event.spent} of {event.limit} spent", "ask"
                )
            case Noted():
                self._say(f"  note    {visible(event.text)}", "dim")
            case _:
                pass

    def _judged(self, decision: Decision, call: Call) -> None:
        tone = _tone(decision.verdict)
        self._say(f"  {_word(decision.verdict):<8}{describe(call)}", tone)
        if restricts(decision.verdict):
            self._say(f"          rule {decision.rule}: {visible(decision.reason)}", tone)


def _wrapped(who: str, text: str) -> str:
    """Words of someone, with their name before the first line and the rest indented below."""
    lines = [textwrap.fill(line, _WORDS_WIDTH) for line in text.splitlines()]
    return textwrap.indent("\n".join(lines), " " * 8).replace(" " * 8, f"{who:<8}", 1)


def describe(call: Call, width: int = 60) -> str:
    """A call in one line: operation, and its arguments cut short."""
    parts = []
    for name, value in call.arguments.items():
        text = visible(value if isinstance(value, str) else repr(value)).replace("\n", "\\n")
        parts.append(
            f"{escape_to_one_line(name)}={text if len(text) <= width else text[: width - 3] + '...'}"
        )
    return " ".join([escape_to_one_line(call.operation), *parts])


def why_it_ended(run: RunEnded) -> str:
    """The gist of what is wrong with a run: the end of its trace, or the limit it met and what became of it."""
    lines = run.error.strip().splitlines()
    return " ".join(lines[-1:] if run.status == "error" else lines[-2:])


def _tone(verdict: Verdict) -> Tone:
    match verdict:
        case "allow" | "stage":
            return "good"
        case "escalate":
            return "ask"
        case "deny":
            return "bad"
        case _:
            assert_never(verdict)


def _word(verdict: Verdict) -> str:
    match verdict:
        case "allow" | "stage" | "deny":
            return verdict
        case "escalate":
            return "ask"
        case _:
            assert_never(verdict)
