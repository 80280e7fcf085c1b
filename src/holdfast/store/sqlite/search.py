"""The full-text index: a derived SQLite file of its own, updated from the journals when a user searches.

An append does not touch it, so it costs nothing until a user searches. A damaged or missing file is rebuilt.
"""

import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec

import holdfast.store.sqlite.database as database
from holdfast.core import SessionId
from holdfast.core.events import decode_event
from holdfast.store.contract import Passage
from holdfast.store.search_text import query_words, searchable_texts
from holdfast.store.sqlite.database import SQL


def discard(path: Path) -> None:
    """Delete the index; the next search rebuilds it.

    This also forgets deleted sessions: words that are removed from a full-text index stay in its file.
    """
    for suffix in ("", "-journal", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)


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
    with _opened(path) as words:
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


class _opened:
    """A connection to the index, in a transaction that is committed at the end."""

    def __init__(self, path: Path) -> None:
        database.create_private(path)
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)

    def __enter__(self) -> sqlite3.Connection:
        try:
            # A crash may destroy the index: then it is rebuilt.
            self._connection.execute("PRAGMA synchronous = OFF")
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                self._connection.execute(statement)
        except BaseException:
            self._connection.close()
            raise
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
        finally:
            self._connection.close()


def _catch_up(connection: sqlite3.Connection, words: sqlite3.Connection) -> None:
    seen = _progress(connection, words)
    before: dict[str, int] = {}
    while portion := connection.execute(SQL["events_since"], (seen,)).fetchall():
        for _, session, seq, at_ms, _, body in portion:
            for turn, text in _texts(body):
                mark = hash((turn, text))
                if before.get(session) == mark:
                    continue  # code that was posted and run, or a reply that is also the outcome, is one passage
                before[session] = mark
                words.execute(SQL["add_passage"], (text, session, seq, turn, at_ms))
        seen, link = portion[-1][0], portion[-1][4]
        words.execute(SQL["forget_progress"])
        words.execute(SQL["note_progress"], (seen, link))


def _progress(connection: sqlite3.Connection, words: sqlite3.Connection) -> int:
    noted = words.execute(SQL["search_progress"]).fetchone()
    if noted is None:
        return 0
    row, link = noted
    if connection.execute(SQL["hash_of_row"], (row,)).fetchone() == (link,):
        return int(row)
    words.execute("DELETE FROM passage")
    return 0


def _texts(body: bytes) -> Iterator[tuple[int, str]]:
    try:
        event = decode_event(body)
    except msgspec.MsgspecError:
        return
    yield from searchable_texts(event)


_SCHEMA = [
    part
    for part in (resources.files(__package__) / "sql" / "search.sql").read_text().split(";")
    if part.strip()
]
