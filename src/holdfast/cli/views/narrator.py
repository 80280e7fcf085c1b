"""Live narration of a session: prints its events as they happen, a few lines each. Colour adds no information."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from holdfast.agent import hidden_output
from holdfast.cli.terminal.console import Tone
from holdfast.core import (
    Call,
    Decision,
    Verdict,
    budget_word,
    cut,
    escape_invisible,
    escape_to_one_line,
    mark_lookalikes,
    restricts,
)
from holdfast.core.events import (
    BudgetWarned,
    CallIntended,
    CallRefused,
    CallSettled,
    CommandEnded,
    EffectsJudged,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    ForkMerged,
    HostJudged,
    InstructionsRead,
    ModelReplied,
    Noted,
    ProcessEnded,
    ProposalsCommitted,
    ProposalsRejected,
    RecordedEvent,
    RunEnded,
    RunStarted,
    ToolReturned,
)
from holdfast.world import READ_IN_PIECES

if TYPE_CHECKING:
    from holdfast.session import Session

Say = Callable[[str, Tone], None]

_TEXT_WIDTH = 70
"""Width of the model's text beside its label, on a terminal of 80 columns."""


MAX_SHOWN_CHARACTERS = 20_000
"""What is shown of one text; `holdfast show` prints the whole."""
MAX_SHOWN_ARGUMENTS = 20
MAX_SHOWN_PATHS = 50


class Narrator:
    """Prints each event after a given sequence number.

    `prints_outcome` says that the outcome of a run is printed after it: an error of one line is left to it. `asks` says that
    the question about a waiting call is printed after it: the reason is left to that.
    """

    def __init__(
        self,
        say: Say,
        *,
        after: int = 0,
        shows_code: bool = False,
        prints_outcome: bool = False,
        asks: bool = False,
    ) -> None:
        self._say = say
        self._after = after
        self._shows_code = shows_code
        self._prints_outcome = prints_outcome
        self._asks = asks
        self._call_error = ""

    def __call__(self, entry: RecordedEvent) -> None:
        if entry.seq > self._after:
            self._print_event(entry)

    def _print_event(self, entry: RecordedEvent) -> None:
        match event := entry.event:
            case ModelReplied() if self._shows_code and event.message.text.strip():
                self._say(_label_and_indent("model", _shown(event.message.text.strip())), "plain")
            case RunStarted() if self._shows_code:
                self._say(f"        runs code in the {event.engine} sandbox:", "dim")
                for line in _shown(event.code.strip()).splitlines():
                    self._say(f"          | {line}", "dim")
            case CallIntended() if event.escalation is not None or event.grant is not None:
                source = "you" if event.escalation is not None else "a saved approval"
                self._say(f"  allow   {describe_call(event.call)} (approved by {source})", "good")
            case CallIntended():
                self._print_decision(event.decision, event.call)
            case CallRefused():
                self._print_decision(event.decision, event.call)
            case CallSettled() if event.status == "error" and READ_IN_PIECES in event.error:
                # Not a failure yet: `open` reads the pieces. Other code fails with this error, which is printed then.
                sizes = event.error.partition("] ")[2].partition(";")[0]
                self._say(f"  large   {_shown(sizes)}, so it is read in pieces", "dim")
            case CallSettled():
                self._call_error = event.error
                if event.status != "ok":
                    self._say(f"  {event.status:<7} {_shown(event.error)}", "bad")
            case EscalationOpened():
                self._print_decision(
                    event.escalation.decision, event.escalation.call, has_reason=not self._asks
                )
            case EscalationAnswered():
                verdict = "approved" if event.response.verdict == "approve" else "denied"
                self._say(
                    f"  answer  {verdict} ({event.response.scope}), by {event.transport}",
                    "ask",
                )
            case EscalationExpired():
                self._say(f"  answer  none: {event.reason}", "ask")
            case RunEnded() | ToolReturned() if (name := hidden_output(event)) is not None:
                self._say(
                    f"  hidden  kept from the model as {name}; /reveal {name} lets it read the words", "dim"
                )
            case RunEnded() if event.status != "ok":
                # A failed call mostly fails its run with the same message: print it once.
                why = run_error_summary(event)
                if why != self._call_error and not (self._prints_outcome and why == event.error.strip()):
                    self._say(f"  {event.status:<7} {_shown(why)}", "bad")
                self._call_error = ""
            case RunEnded() if self._shows_code and event.printed.strip():
                for line in _shown(event.printed.rstrip()).splitlines():
                    self._say(f"          > {line}", "dim")
            case CommandEnded():
                self._say(f"  ended   {describe_end(event)}", "dim")
            case EffectsJudged():
                for label, tone, touched in _effect_lines(event):
                    self._say(f"  {label:<8}{_path_list(touched)} (by a program)", tone)
            case HostJudged():
                tone = _tone(event.verdict)
                self._say(
                    f"  {_verdict_label(event.verdict):<8}connection to {escape_to_one_line(event.host)}",
                    tone,
                )
            case ProcessEnded():
                how = event.signal or f"code {event.code}"
                self._say(f"  ended   background process {event.process} ({how})", "dim")
            case ProposalsCommitted():
                self._say(f"  commit  {_path_list([change.path for change in event.changes])}", "good")
            case ForkMerged():
                paths = _path_list([change.path for change in event.changes])
                self._say(f"  merge   {paths} into {event.parent}", "good")
            case ProposalsRejected():
                self._say(f"  reject  {_path_list(event.paths)}", "ask")
            case BudgetWarned():
                self._say(
                    f"  budget  {budget_word(event.dimension)}: {event.spent} of {event.limit} spent", "ask"
                )
            case InstructionsRead():
                self._say(f"  follows {_path_list([event.file])}, the instructions for its folder", "dim")
            case Noted():
                self._say(f"  note    {_shown(event.text)}", "dim")
            case _:
                pass

    def _print_decision(self, decision: Decision, call: Call, *, has_reason: bool = True) -> None:
        tone = _tone(decision.verdict)
        self._say(f"  {_verdict_label(decision.verdict):<8}{describe_call(call)}", tone)
        if has_reason and restricts(decision.verdict):
            self._say(f"          rule {decision.rule}: {_shown(decision.reason)}", tone)


def say_creation_notes(session: "Session", say: Say) -> None:
    """Print the notes of a new session, which are on record before anybody follows it."""
    for noted in session.notes():
        if noted.code in ("name-shortened", "host-pinned"):
            say(f"note: {noted.text}", "ask")


def describe_end(ended: CommandEnded) -> str:
    """How a program ended, in a few words."""
    how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.code}"
    why = (
        " (took too long)"
        if ended.is_timed_out
        else f" (too much {ended.stopped_because})"
        if ended.stopped_because
        else ""
    )
    return f"{how}{why} after {ended.seconds:.1f} s"


def _effect_lines(event: EffectsJudged) -> Iterator[tuple[str, Tone, list[str]]]:
    for verdict in ("allow", "stage", "escalate", "deny"):
        paths = [each.effect.path for each in event.effects if each.verdict == verdict]
        if paths:
            label = "asks" if verdict == "escalate" else "write" if verdict == "allow" else verdict
            yield label, _tone(verdict), paths


def _shown(text: str) -> str:
    """A text as it is shown: cut, then escaped."""
    rest = len(text) - MAX_SHOWN_CHARACTERS
    shown = escape_invisible(text[:MAX_SHOWN_CHARACTERS])
    return shown if rest <= 0 else f"{shown}\n[... {rest:,} more characters; holdfast show prints them]"


def _path_list(paths: Sequence[str]) -> str:
    named = ", ".join(escape_to_one_line(path) for path in paths[:MAX_SHOWN_PATHS])
    rest = len(paths) - MAX_SHOWN_PATHS
    return named if rest <= 0 else f"{named} and {rest:,} more"


def _label_and_indent(label: str, text: str) -> str:
    """Text with a label before its first line and the other lines indented."""
    lines = [textwrap.fill(line, _TEXT_WIDTH) for line in text.splitlines()]
    return textwrap.indent("\n".join(lines), " " * 8).replace(" " * 8, f"{label:<8}", 1)


def describe_call(call: Call, width: int = 60) -> str:
    """A call in one line: the operation and its shortened arguments."""
    parts = []
    for name, value in islice(call.arguments.items(), MAX_SHOWN_ARGUMENTS):
        # Cut first, then escape: escaping looks at every character, and an argument may have millions.
        brief = cut(value, width + 1)
        text = mark_lookalikes(
            escape_invisible(brief if isinstance(brief, str) else repr(brief)[: 8 * width])
        )
        text = text.replace("\n", "\\n").replace("\t", "\\t")
        shown = text if len(text) <= width else text[: width - 3] + "..."
        parts.append(f"{escape_to_one_line(name[:width])}={shown}")
    if len(call.arguments) > MAX_SHOWN_ARGUMENTS:
        parts.append(f"... {len(call.arguments)} arguments in total")
    return " ".join([escape_to_one_line(call.operation), *parts])


def run_error_summary(run: RunEnded) -> str:
    """Why a run failed: the exception below its traceback, the first problem of code that did not run, or the limit."""
    lines = run.error[-MAX_SHOWN_CHARACTERS:].strip().splitlines()
    if run.status != "error":
        return " ".join(lines[-2:])
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    if not frames:
        return run.error[:MAX_SHOWN_CHARACTERS].strip().partition("\n")[0]
    return next((line for line in lines[frames[-1] :] if not line.startswith(" ")), lines[-1])


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
