"""The full-text index: a derived SQLite file of its own, updated from the journals when a user searches.

An append does not touch it, so it costs nothing until a user searches. A damaged or missing file is rebuilt.
"""

import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.core import SessionId
from holdfast.core.events import decode_event
from holdfast.store.contract import Passage
from holdfast.store.derived.search_text import query_words, searchable_texts
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.derived_file import (
    discard,
    find_progress,
    load_schema,
    note_progress,
    opened_file,
)


def parse_query(text: str) -> str:
    """Translate a query to the syntax of the full-text index. Raises InvalidInput if it has no words."""
    words = (word.replace('"', '""') for word in query_words(text))
    return " ".join(f'"{word}"*' for word in words)


def run_query(connection: sqlite3.Connection, path: Path, query: str, limit: int) -> list[Passage]:
    """Update the index and return the passages that match a query, newest first."""
    try:
        return _ask(connection, path, query, limit)
    except (sqlite3.DatabaseError, OSError):
        discard(path)
        return _ask(connection, path, query, limit)


def _ask(connection: sqlite3.Connection, path: Path, query: str, limit: int) -> list[Passage]:
    with opened_file(path, _SCHEMA) as words:
        _catch_up(connection, words)
        mark = secrets.token_hex(8)  # cannot occur in a text
        found = words.execute(SQL["find_passages"], (mark, mark, query, limit)).fetchall()
    return [
        Passage(
            session=SessionId(owner),
            seq=seq,
            turn=turn,
            at_ms=at_ms,
            snippet=marked.replace(mark, ""),
            pieces=tuple(marked.split(mark)),
        )
        for session, seq, turn, at_ms, marked in found
        for (owner,) in connection.execute(SQL["owner_of"], (session, seq))
    ]


def _catch_up(connection: sqlite3.Connection, words: sqlite3.Connection) -> None:
    seen = find_progress(connection, words)
    if seen is None:
        words.execute("DELETE FROM passage")
        seen = 0
    before: dict[str, int] = {}
    while portion := connection.execute(SQL["events_since"], (seen,)).fetchall():
        for _, session, seq, at_ms, _, body in portion:
            for turn, text in _texts(body):
                mark = hash((turn, text))
                if before.get(session) == mark:
                    continue  # code that was posted and run, or a reply that is also the outcome, is one passage
                before[session] = mark
                words.execute(SQL["add_passage"], (text, session, seq, turn, at_ms))
        seen = portion[-1][0]
        note_progress(words, seen, portion[-1][4])


def _texts(body: bytes) -> Iterator[tuple[int, str]]:
    try:
        event = decode_event(body)
    except msgspec.MsgspecError:
        return
    yield from searchable_texts(event)


_SCHEMA = load_schema("search.sql")
