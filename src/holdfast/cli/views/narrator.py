"""Live narration of a session: prints its events as they happen, a few lines each. Colour adds no information."""

import textwrap
from collections.abc import Callable
from typing import assert_never

from holdfast.cli.terminal.console import Tone
from holdfast.core import (
    Call,
    Decision,
    Verdict,
    budget_word,
    escape_invisible,
    escape_to_one_line,
    restricts,
)
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

_TEXT_WIDTH = 70
"""Width of the model's text beside its label, on a terminal of 80 columns."""


class Narrator:
    """Prints each event after a given sequence number."""

    def __init__(self, say: Say, *, after: int = 0, shows_code: bool = False) -> None:
        self._say = say
        self._after = after
        self._shows_code = shows_code
        self._call_error = ""

    def __call__(self, entry: RecordedEvent) -> None:
        if entry.seq > self._after:
            self._print_event(entry)

    def _print_event(self, entry: RecordedEvent) -> None:
        match event := entry.event:
            case ModelReplied() if self._shows_code and event.message.text.strip():
                self._say(_label_and_indent("model", escape_invisible(event.message.text.strip())), "plain")
            case RunStarted() if self._shows_code:
                self._say(f"        runs code in the {event.engine} sandbox:", "dim")
                for line in escape_invisible(event.code.strip()).splitlines():
                    self._say(f"          | {line}", "dim")
            case CallIntended() if event.escalation is not None or event.grant is not None:
                source = "you" if event.escalation is not None else "a saved approval"
                self._say(f"  allow   {describe_call(event.call)} (approved by {source})", "good")
            case CallIntended():
                self._print_decision(event.decision, event.call)
            case CallRefused():
                self._print_decision(event.decision, event.call)
            case CallSettled():
                self._call_error = event.error
                if event.status != "ok":
                    self._say(f"  {event.status:<8}{escape_invisible(event.error)}", "bad")
            case EscalationOpened():
                self._print_decision(event.escalation.decision, event.escalation.call)
            case EscalationAnswered():
                verdict = "approved" if event.response.verdict == "approve" else "denied"
                self._say(
                    f"  answer  {verdict} ({event.response.scope}), by {event.transport}",
                    "ask",
                )
            case EscalationExpired():
                self._say(f"  answer  none: {event.reason}", "ask")
            case RunEnded() if event.status != "ok":
                # A failed call mostly fails its run with the same message: print it once.
                if (why := run_error_summary(event)) != self._call_error:
                    self._say(f"  {event.status:<8}{escape_invisible(why)}", "bad")
                self._call_error = ""
            case RunEnded() if self._shows_code and event.printed.strip():
                for line in escape_invisible(event.printed.rstrip()).splitlines():
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
                self._say(f"  note    {escape_invisible(event.text)}", "dim")
            case _:
                pass

    def _print_decision(self, decision: Decision, call: Call) -> None:
        tone = _tone(decision.verdict)
        self._say(f"  {_verdict_label(decision.verdict):<8}{describe_call(call)}", tone)
        if restricts(decision.verdict):
            self._say(f"          rule {decision.rule}: {escape_invisible(decision.reason)}", tone)


def _label_and_indent(label: str, text: str) -> str:
    """Text with a label before its first line and the other lines indented."""
    lines = [textwrap.fill(line, _TEXT_WIDTH) for line in text.splitlines()]
    return textwrap.indent("\n".join(lines), " " * 8).replace(" " * 8, f"{label:<8}", 1)


def describe_call(call: Call, width: int = 60) -> str:
    """A call in one line: the operation and its shortened arguments."""
    parts = []
    for name, value in call.arguments.items():
        text = escape_invisible(value if isinstance(value, str) else repr(value)).replace("\n", "\\n")
        parts.append(
            f"{escape_to_one_line(name)}={text if len(text) <= width else text[: width - 3] + '...'}"
        )
    return " ".join([escape_to_one_line(call.operation), *parts])


def run_error_summary(run: RunEnded) -> str:
    """Why a run failed: the last line of its traceback, or the limit that stopped it."""
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


def _verdict_label(verdict: Verdict) -> str:
    match verdict:
        case "allow" | "stage" | "deny":
            return verdict
        case "escalate":
            return "ask"
        case _:
            assert_never(verdict)
