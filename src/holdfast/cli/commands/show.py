"""Show what was said and done in a session.

holdfast show my-session
holdfast show 2026-11 --turn 3
holdfast show my-session --events --json     every event as it is recorded
holdfast show my-session --follow            read along with the process that holds it, until Ctrl-C

Exit codes: 1 when there is no such session, 2 when there is no such turn, 130 when reading along was stopped.
"""

import argparse
from collections.abc import Iterator, Sequence

from holdfast.cli import exits
from holdfast.cli.console import Console, visible
from holdfast.cli.outcomes import in_words
from holdfast.cli.session_table import row
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core import SystemClock, encode
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelReplied,
    Recorded,
    RunEnded,
    TurnEnded,
)
from holdfast.core.fold import effective
from holdfast.store import read_along

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
    async with opened_store() as (_, store):
        session = await chosen_session(store, arguments.session)
        summary = await store.summary(session)
        recorded: Sequence[Recorded] = await store.read(session)
        shown = recorded if arguments.events else effective(recorded)
        if not arguments.follow and not any(_is_of(one, arguments.turn) for one in shown):
            raise InvalidInput(
                f"there is no turn {arguments.turn} in this session",
                hint=f"holdfast show {summary.name or session} shows those there are",
            )
        if arguments.json and not arguments.follow:
            events = [_plain(one) for one in shown if _is_of(one, arguments.turn)]
            console.json({"session": summary, "events": events})
            return exits.OK
        console.say(row(summary, SystemClock().now_ms()), "dim", folds=True)
        for one in shown:
            _tell(one, arguments, console)
        if arguments.follow:
            async for one in read_along(store, session, after=recorded[-1].seq):
                _tell(one, arguments, console)
    return exits.OK


def _tell(one: Recorded, arguments: argparse.Namespace, console: Console) -> None:
    if not _is_of(one, arguments.turn):
        return
    if arguments.json:
        console.print(encode(_plain(one)).decode())
        return
    if arguments.events:
        console.print(f"{one.seq:>5}  {type(one.event).__name__}")
    for line in _told(one):
        console.print(line)


def _is_of(one: Recorded, turn: int | None) -> bool:
    return turn is None or getattr(one.event, "turn", None) == turn


def _plain(one: Recorded) -> dict[str, object]:
    return {
        "session": one.session,
        "seq": one.seq,
        "at_ms": one.at_ms,
        "hash": one.hash.hex(),
        "event": one.event,
    }


def _told(one: Recorded) -> Iterator[str]:
    match one.event:
        case MessagePosted(turn=turn, text=text):
            yield f"[{turn}] you: {visible(text)}"
        case CodePosted(turn=turn, code=code):
            yield f"[{turn}] code: {visible(code)}"
        case ModelReplied(message=message) if message.text:
            yield f"    agent: {visible(message.text)}"
        case CallIntended(call=call):
            yield f"    did: {visible(call.operation)}"
        case CallRefused(call=call, decision=decision):
            yield f"    refused: {visible(call.operation)} ({visible(decision.reason)})"
        case RunEnded(status=status, error=error) if status != "ok":
            yield f"    run {status}: {visible(error)}"
        case HistoryCompacted(through=through):
            yield f"    turns up to {through} were summed up"
        case TurnEnded(turn=turn, outcome=outcome):
            yield f"[{turn}] {in_words(outcome)}"
        case _:
            return
