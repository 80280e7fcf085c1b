"""Take a session back to the end of an earlier turn: chat, files, staged changes, budget and grants together.

holdfast rewind SESSION                 the turns there are, and which can be gone back to
holdfast rewind SESSION --to 3 --dry-run
holdfast rewind SESSION --to 3

What left the machine stays as it is: such calls are listed before anything happens. The files as they are now are kept
as a restore point too, and its name is printed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli import exits
from holdfast.cli.console import Console, visible
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core import PERSON, Change
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    MessagePosted,
    Recorded,
    RestorePointMade,
    SessionRewound,
)
from holdfast.core.fold import effective
from holdfast.store import Home, Journal, Store
from holdfast.world import RestorePoints

OURS = ("world", "model")
"""Groups whose effects a rewind takes back, or that have none."""


def configure(parser: argparse.ArgumentParser) -> None:
    """How far back."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument(
        "--to", type=int, metavar="TURN", help="the turn after which to go on; 0 is the start"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    parser.add_argument("--json", action="store_true", help="a JSON document on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """List the points, show the way back to one, or go it."""
    console = Console()
    async with opened_store() as (home, store):
        session = await chosen_session(store, arguments.session)
        if arguments.to is None:
            _list(await store.read(session), arguments, console)
            return exits.OK
        journal = await store.open(session)
        try:
            await _rewind(home, store, journal, arguments, console)
        finally:
            await journal.release()
    return exits.OK


async def _rewind(
    home: Home, store: Store, journal: Journal, arguments: argparse.Namespace, console: Console
) -> None:
    recorded = effective(journal.recorded)
    made = _point(recorded, arguments.to)
    summary = await store.summary(journal.session)
    points = RestorePoints(
        Path(summary.workspace or home.workspace(journal.session)),
        keep=store.put_blob,
        fetch=store.blob,
        last=_newest(recorded),
        cache=home.cache / "signs" / journal.session,
    )
    lasting = lasting_effects(recorded, after=made.seq)
    assert isinstance(made.event, RestorePointMade)
    if arguments.dry_run:
        _show(await points.preview(made.event.manifest), lasting, arguments, console)
        return
    # Files first: cut off in between, the session still says where it was, and rewinding again does the rest.
    restored = await points.restore(made.event.manifest)
    await journal.append(SessionRewound(seq=made.seq, turn=arguments.to, principal=PERSON))
    points.save()
    _show(restored.changes, lasting, arguments, console)
    console.say(
        f"rewound to the end of turn {arguments.to}; the files before are restore point {restored.before}"
    )


def lasting_effects(recorded: Sequence[Recorded], *, after: int) -> tuple[str, ...]:
    """The operations after an event that no rewind takes back: they were done elsewhere, or may have been."""
    intended = {
        entry.event.call.id: entry.event.call.operation
        for entry in recorded
        if entry.seq > after and isinstance(entry.event, CallIntended)
    }
    harmless = {
        entry.event.call
        for entry in recorded
        if isinstance(entry.event, CallSettled) and entry.event.status == "error"
    }
    return tuple(
        f"{call} {operation}"
        for call, operation in intended.items()
        if call not in harmless and operation.partition(".")[0] not in OURS
    )


def _point(recorded: Sequence[Recorded], turn: int) -> Recorded:
    for entry in reversed(recorded):
        if isinstance(entry.event, RestorePointMade) and entry.event.turn == turn:
            return entry
    raise InvalidInput(
        f"there is no restore point of turn {turn}", hint="see which there are: holdfast rewind SESSION"
    )


def _newest(recorded: Sequence[Recorded]) -> str | None:
    made = [entry.event.manifest for entry in recorded if isinstance(entry.event, RestorePointMade)]
    return made[-1] if made else None


def _list(recorded: Sequence[Recorded], arguments: argparse.Namespace, console: Console) -> None:
    counted = effective(recorded)
    words = {each.event.turn: each.event.text for each in counted if isinstance(each.event, MessagePosted)}
    turns = [each.event.turn for each in counted if isinstance(each.event, RestorePointMade)]
    if arguments.json:
        console.json([{"turn": turn, "text": words.get(turn, "")} for turn in turns])
        return
    if not turns:
        console.say("no turn of this session can be gone back to")
    for turn in turns:
        console.print(f"{turn:>4}  {visible(words.get(turn, 'the start')).splitlines()[0][:100]}")


def _show(
    changes: Sequence[Change], lasting: Sequence[str], arguments: argparse.Namespace, console: Console
) -> None:
    if arguments.json:
        console.json({"turn": arguments.to, "changes": changes, "cannot_be_undone": lasting})
        return
    for change in changes:
        console.print(f"{change.kind:<9} {visible(change.path)}")
    if not changes:
        console.say("no file changes")
    for effect in lasting:
        console.say(f"cannot be undone: {effect}", "bad")
