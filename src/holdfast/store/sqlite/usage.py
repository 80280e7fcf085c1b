"""What sessions used: a derived SQLite file of its own, updated from the journals when somebody asks. An append does not touch it."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

import holdfast.store.sqlite.database as database
from holdfast.core import SessionId
from holdfast.core.events import decode_event
from holdfast.store.derived.usage import COUNTS, SessionPlace, UsageFold, UsageTotal, is_folded, usage_total
from holdfast.store.home import Home
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.derived_file import (
    discard,
    find_progress,
    load_schema,
    note_progress,
    opened_file,
)

_TABLES = ("part", "total", "place", "asked", "progress")


def read_totals(home: Home, since_day: str) -> list[UsageTotal]:
    """What all sessions used since a day, one row a day, model, folder and pair."""
    return _ask(home, SQL["usage_totals"], (since_day,))


def read_parts(home: Home, since_day: str, session: SessionId | None) -> list[UsageTotal]:
    """The same by session, of all or of one."""
    return _ask(home, SQL["usage_parts"], (since_day, session))


def forget(path: Path, session: SessionId) -> None:
    """Take a deleted session out of the totals."""
    if not path.exists():
        return
    try:
        with opened_file(path, _SCHEMA) as usage:
            usage.execute(SQL["take_from_usage_total"], (session,))
            usage.execute(SQL["drop_empty_usage"])
            for name in ("forget_usage_part", "forget_usage_place", "forget_usage_asked"):
                usage.execute(SQL[name], (session,))
    except (sqlite3.DatabaseError, OSError):
        discard(path)


def _ask(home: Home, query: str, given: tuple[object, ...]) -> list[UsageTotal]:
    # With a connection of its own: the first look may read many events, and others must not wait for it.
    with closing(database.connect(home.database)) as connection:
        connection.execute("BEGIN")
        try:
            return _caught_up(connection, home.usage, query, given)
        except (sqlite3.DatabaseError, OSError) as problem:
            if getattr(problem, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise  # another process updates it
            discard(home.usage)
            return _caught_up(connection, home.usage, query, given)


def _caught_up(
    connection: sqlite3.Connection, path: Path, query: str, given: tuple[object, ...]
) -> list[UsageTotal]:
    with opened_file(path, _SCHEMA) as usage:
        _catch_up(connection, usage)
        return [usage_total(row) for row in usage.execute(query, given)]


def _catch_up(connection: sqlite3.Connection, usage: sqlite3.Connection) -> None:
    seen = find_progress(connection, usage)
    if seen is None:
        for table in _TABLES:
            usage.execute(f"DELETE FROM {table}")  # noqa: S608 a name of ours
        seen = 0
    while portion := connection.execute(SQL["events_since"], (seen,)).fetchall():
        _fold(connection, usage, portion)
        seen = portion[-1][0]
        note_progress(usage, seen, portion[-1][4])


def _fold(connection: sqlite3.Connection, usage: sqlite3.Connection, portion: Sequence[tuple]) -> None:  # type: ignore[type-arg]
    sessions = {session for _, session, *_ in portion}
    # A deleted session whose events a fork shares does not count.
    listed = {each for each in sessions if connection.execute(SQL["is_listed"], (each,)).fetchone()}
    places = {
        each: SessionPlace(model=row[0], folder=row[1], pair=row[2])
        for each in listed
        if (row := usage.execute(SQL["usage_place"], (each,)).fetchone()) is not None
    }
    asked = {(SessionId(session), id): at_ms for session, id, at_ms in usage.execute(SQL["usage_asked"])}
    fold = UsageFold(places, asked)
    for _, session, _, at_ms, _, body in portion:
        if session in listed and is_folded(body):
            try:
                fold.add(session, at_ms, decode_event(body))
            except msgspec.MsgspecError:
                continue  # `verify` reports it
    for total in fold.totals():
        key, counts = total.key, [getattr(total.counts, name) for name in COUNTS]
        row = (key.day, key.model, key.folder, key.pair, *counts)
        usage.execute(SQL["add_usage_part"], (total.session, *row))
        usage.execute(SQL["add_usage_total"], row)
    changed = ((id, place) for id, place in fold.places.items() if places.get(id) != place)
    usage.executemany(
        SQL["put_usage_place"], [(id, place.model, place.folder, place.pair) for id, place in changed]
    )
    usage.executemany(SQL["settle_usage_asked"], sorted(fold.settled))
    new = ((*id, at_ms) for id, at_ms in fold.asked.items() if id not in asked)
    usage.executemany(SQL["put_usage_asked"], list(new))


_SCHEMA = load_schema("usage.sql")
