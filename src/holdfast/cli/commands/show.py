"""Show what was said and done in a session.

holdfast show my-session
holdfast show 2026-11 --turn 3
holdfast show my-session --events --json     every event as it is recorded
holdfast show my-session --follow            read along with the process that holds it, until Ctrl-C

Exit codes: 1 when there is no such session or it is damaged, 2 when there is no such turn, 130 when reading along was stopped.
"""

import argparse
from collections.abc import Iterator, Sequence

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.narrator import describe_call
from holdfast.cli.views.result import describe_outcome
from holdfast.cli.views.session_table import sentence
from holdfast.core import SystemClock, encode, escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelReplied,
    RecordedEvent,
    RunEnded,
    RunStarted,
    TurnEnded,
)
from holdfast.core.projection import without_rewound
from holdfast.store import tail

WORKING = "reads the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and how much of it."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("--turn", type=int, metavar="N", help="only this turn")
    parser.add_argument("--events", action="store_true", help="every event, rewound ones too")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is still to come")
    parser.add_argument(
        "--json",
        action="store_true",
        help="a JSON document on stdout; with --follow one a line for each event",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Read the journal and tell it."""
    console = Console()
    async with open_store() as (_, store):
        session = await resolve_session(store, arguments.session)
        summary = await store.summary(session)
        recorded: Sequence[RecordedEvent] = await store.read(session)
        shown = recorded if arguments.events else without_rewound(recorded)
        if not arguments.follow and not _has_turn(shown, arguments.turn):
            raise InvalidInput(
                f"there is no turn {arguments.turn} in this session",
                hint=f"holdfast show {summary.name or session} shows those there are",
            )
        part = _TurnFilter(arguments.turn)
        if arguments.json and not arguments.follow:
            console.json({"session": summary, "events": [_as_json(one) for one in shown if part.has(one)]})
            return exit_codes.OK
        told = sentence(summary, SystemClock().now_ms())
        console.say(f"{told}{_sandboxes(recorded)}", "dim", folds=True)
        for one in shown:
            if part.has(one):
                _print_event(one, arguments, console)
        if arguments.follow:
            async for one in tail(store, session, after=recorded[-1].seq):
                if part.has(one):
                    _print_event(one, arguments, console)
    return exit_codes.OK


class _TurnFilter:
    """What belongs to one turn, or to any. An event that names no turn belongs to the one that is under way."""

    def __init__(self, turn: int | None) -> None:
        self._wanted = turn
        self._current = 0

    def has(self, one: RecordedEvent) -> bool:
        """Whether the next event is a part of it."""
        self._current = getattr(one.event, "turn", self._current)
        return self._wanted is None or self._wanted == self._current


def _has_turn(shown: Sequence[RecordedEvent], turn: int | None) -> bool:
    begun = (one.event for one in shown if isinstance(one.event, MessagePosted | CodePosted))
    return turn is None or any(event.turn == turn for event in begun)


def _sandboxes(recorded: Sequence[RecordedEvent]) -> str:
    """Where code ran; of a run for which an engine was chosen, that one."""
    runs = [one.event for one in recorded if isinstance(one.event, RunStarted | RunEnded)]
    engines = {(run.turn, run.run): run.engine for run in runs if run.engine}
    named = ", ".join(dict.fromkeys(engines.values()))
    return f"; code ran in the sandbox {named}" if named else ""


def _print_event(one: RecordedEvent, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.json:
        console.print(encode(_as_json(one)).decode())
        return
    if arguments.events:
        console.print(f"{one.seq:>5}  {type(one.event).__name__}")
    for label, text in _event_texts(one):
        first, *rest = escape_invisible(text.rstrip()).split("\n")
        for line in (f"{label}{first}", *(f"    {each}" for each in rest)):
            console.show(line.rstrip(), folds=True)


def _as_json(one: RecordedEvent) -> dict[str, object]:
    return {
        "session": one.session,
        "seq": one.seq,
        "at_ms": one.at_ms,
        "hash": one.hash.hex(),
        "event": one.event,
    }


def _event_texts(one: RecordedEvent) -> Iterator[tuple[str, str]]:
    match one.event:
        case MessagePosted(turn=turn, text=text):
            yield f"[{turn}] you: ", text
        case CodePosted(turn=turn, code=code):
            yield f"[{turn}] code: ", code
        case ModelReplied(message=message) if message.text:
            yield "    agent: ", message.text
        case CallIntended(call=call, decision=decision):
            yield "    staged: " if decision.verdict == "stage" else "    did: ", describe_call(call)
        case CallRefused(call=call, decision=decision):
            yield "    refused: ", f"{describe_call(call)} ({decision.reason})"
        case RunEnded(status=status, error=error, printed=printed):
            if printed.strip():
                yield "    printed: ", printed
            if status != "ok":
                yield f"    run {status}: ", error
        case HistoryCompacted(through=through):
            yield "    ", f"turns up to {through} were summed up"
        case TurnEnded(turn=turn, outcome=outcome):
            yield f"[{turn}] ", describe_outcome(outcome)
        case _:
            return
