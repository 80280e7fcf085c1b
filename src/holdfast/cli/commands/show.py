"""Show the messages and actions of a session.

holdfast show my-session
holdfast show 2026-11 --turn 3
holdfast show my-session --full              with the whole results of calls and values of runs
holdfast show my-session --events --json     every event as recorded
holdfast show my-session --follow            follow new events until Ctrl-C

Exit codes: 1 when there is no such session or it is damaged, 2 when there is no such turn, 130 when --follow is stopped.
"""

import argparse
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.narrator import describe_call, describe_end
from holdfast.cli.views.session_table import sentence
from holdfast.core import Json, SystemClock, encode, escape_invisible, escape_json
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    CodePosted,
    CommandEnded,
    CommandStarted,
    EffectsJudged,
    ForkMerged,
    HistoryCompacted,
    HostJudged,
    MessagePosted,
    ModelReplied,
    ProcessEnded,
    ProposalsCommitted,
    ProposalsRejected,
    RecordedEvent,
    RunEnded,
    RunStarted,
    TurnEnded,
)
from holdfast.core.projection import without_rewound
from holdfast.gate import LargeValues
from holdfast.services import describe_outcome
from holdfast.store import tail

PROGRESS = "reading the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--turn", type=int, metavar="N", help="show only this turn")
    parser.add_argument("--events", action="store_true", help="show every event, including rewound ones")
    parser.add_argument(
        "--full", action="store_true", help="show results and values, whole, however large they are"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new events")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON; with --follow one line per event",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Print the journal."""
    console = Console()
    async with open_store(only_reads=True) as (home, store):
        session = await resolve_session(store, arguments.session)
        summary = await store.summary(session)
        recorded: Sequence[RecordedEvent] = await store.read(session)
        shown = recorded if arguments.events else without_rewound(recorded)
        if not arguments.follow and not _has_turn(shown, arguments.turn):
            raise InvalidInput(
                f"there is no turn {arguments.turn} in this session",
                hint=f"show all turns with: holdfast show {summary.name or session}",
            )
        turn_filter = _TurnFilter(arguments.turn)
        load = _Loader(LargeValues(store.blob) if arguments.full else None)
        if arguments.json and not arguments.follow:
            console.json(
                {
                    "session": summary,
                    "events": [_as_json(await load(one)) for one in shown if turn_filter.matches(one)],
                }
            )
            return exit_codes.OK
        summary_text = sentence(summary, SystemClock().now_ms(), home)
        console.say(f"{summary_text}{_sandboxes(recorded)}", "dim", folds=True)
        for one in shown:
            if turn_filter.matches(one):
                _print_event(await load(one), arguments, console)
        if arguments.follow:
            async for one in tail(store, session, after=recorded[-1].seq):
                if turn_filter.matches(one):
                    _print_event(await load(one), arguments, console)
    return exit_codes.OK


class _Loader:
    """Replaces the previews in an event by the whole values; without `large_values` it changes nothing."""

    def __init__(self, large_values: LargeValues | None) -> None:
        self._large_values = large_values

    async def __call__(self, one: RecordedEvent) -> RecordedEvent:
        if self._large_values is None:
            return one
        return msgspec.structs.replace(one, event=await self._large_values.whole_event(one.event))


class _TurnFilter:
    """Selects the events of one turn, or all. An event without a turn number belongs to the current turn."""

    def __init__(self, turn: int | None) -> None:
        self._wanted = turn
        self._current = 0

    def matches(self, one: RecordedEvent) -> bool:
        """Whether the next event is selected."""
        self._current = getattr(one.event, "turn", self._current)
        return self._wanted is None or self._wanted == self._current


def _has_turn(shown: Sequence[RecordedEvent], turn: int | None) -> bool:
    started = (one.event for one in shown if isinstance(one.event, MessagePosted | CodePosted))
    return turn is None or any(event.turn == turn for event in started)


def _sandboxes(recorded: Sequence[RecordedEvent]) -> str:
    """The sandboxes in which code ran."""
    runs = [one.event for one in recorded if isinstance(one.event, RunStarted | RunEnded)]
    engines = {(run.turn, run.run): run.engine for run in runs if run.engine}
    named = ", ".join(dict.fromkeys(engines.values()))
    return f"; sandbox: {named}" if named else ""


def _print_event(one: RecordedEvent, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.json:
        console.print(escape_json(encode(_as_json(one)).decode()))
        return
    if arguments.events:
        console.print(f"{one.seq:>5}  {type(one.event).__name__}")
    for label, text in _event_texts(one):
        for line in _lines(label, text.rstrip()):
            console.show(line.rstrip(), folds=True)
    for label, text in _result_texts(one) if arguments.full else ():
        for line in _lines(label, text):  # whole, with the blanks at the end of each line
            console.show(line, folds=True)


def _lines(label: str, text: str) -> Iterator[str]:
    first, *rest = escape_invisible(text).split("\n")
    yield f"{label}{first}"
    yield from (f"    {each}" for each in rest)


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
        case CommandStarted(process=process, name=name) if process:
            yield "    started: ", f"{process} ({name}) in the background"
        case CommandEnded():
            yield "    ended: ", describe_end(one.event)
        case ProcessEnded(process=process):
            yield "    ended: ", f"background process {process}"
        case EffectsJudged(effects=effects):
            for effect in effects:
                yield f"    {effect.verdict} by a program: ", f"{effect.effect.path} {effect.effect.kind}"
        case HostJudged(host=host, verdict=verdict):
            yield f"    {verdict} connection: ", host
        case ProposalsCommitted(changes=changes):
            yield "    committed: ", ", ".join(change.path for change in changes)
        case ProposalsRejected(paths=paths):
            yield "    rejected: ", ", ".join(paths)
        case ForkMerged(parent=parent, changes=changes):
            yield f"    merged into {parent}: ", ", ".join(change.path for change in changes)
        case HistoryCompacted(through=through):
            yield "    ", f"turns up to {through} were summarized"
        case TurnEnded(turn=turn, outcome=outcome):
            yield f"[{turn}] ", describe_outcome(outcome)
        case _:
            return


def _result_texts(one: RecordedEvent) -> Iterator[tuple[str, str]]:
    match one.event:
        case CallSettled(status="ok", result=result) if result is not None:
            yield "    returned: ", _as_text(result)
        case CallSettled(error=error) if error:
            yield "    failed: ", error
        case RunEnded(value=value) if value is not None:
            yield "    value: ", _as_text(value)
        case _:
            return


def _as_text(value: Json) -> str:
    """A value as text: a text as it is, a list or table with one item per line."""
    if isinstance(value, str):
        return value
    is_long = isinstance(value, list | dict) and len(value) > 1
    return msgspec.json.format(encode(value), indent=2 if is_long else -1).decode()
