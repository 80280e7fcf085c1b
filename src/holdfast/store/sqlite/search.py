"""The word file: full text over everything that was said, derived, brought up to date when it is asked.

It is no part of an append: words are taken in afterwards, from the journal, so searching costs nothing until somebody
searches. A damaged or missing file is made anew.
"""

import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec

import holdfast.store.sqlite.database as database
from holdfast.core import Ok, Proposed, SessionId, Value
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    AnyEvent,
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelReplied,
    RunEnded,
    RunStarted,
    TurnEnded,
    decode_event,
)
from holdfast.store.sqlite.database import SQL


class Passage(Value):
    """A place where the words were found; `pieces` are its snippet, every second one of them a word that was found."""

    session: SessionId
    seq: int
    turn: int
    at_ms: int
    snippet: str
    pieces: tuple[str, ...] = ()


def discard(path: Path) -> None:
    """Throw the file away; the next search makes it anew.

    Also the way to forget a deleted session: words taken out of a full-text index stay in it until it is made anew.
    """
    for suffix in ("", "-journal", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)


def parse_query(text: str) -> str:
    """The words, as the word file is asked for them. Raises InvalidInput for no words."""
    words = [word.replace('"', '""') for word in text.split() if any(map(str.isalnum, word))]
    if not words:
        raise InvalidInput("there is no word to search for", hint='like this: holdfast search "failing test"')
    return " ".join(f'"{word}"*' for word in words)


def run_query(connection: sqlite3.Connection, path: Path, question: str, limit: int) -> list[Passage]:
    """The passages with these words, newest first, everything up to now taken in."""
    try:
        return _ask(connection, path, question, limit)
    except (sqlite3.DatabaseError, OSError):
        discard(path)
        return _ask(connection, path, question, limit)


def _ask(connection: sqlite3.Connection, path: Path, question: str, limit: int) -> list[Passage]:
    with _opened(path) as words:
        _catch_up(connection, words)
        mark = secrets.token_hex(8)  # nobody can have said it
        found = words.execute(SQL["find_passages"], (mark, mark, question, limit)).fetchall()
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
    """The file of words, its changes kept at the end."""

    def __init__(self, path: Path) -> None:
        database.create_private(path)
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)

    def __enter__(self) -> sqlite3.Connection:
        try:
            # It may be lost in a crash: then it is made anew.
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
                    continue  # what was posted and then run, or said and then the outcome, is one passage
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
        event: AnyEvent = decode_event(body)
    except msgspec.MsgspecError:
        return
    match event:
        case MessagePosted(turn=turn, text=text):
            yield turn, text
        case CodePosted(turn=turn, code=code) | RunStarted(turn=turn, code=code):
            yield turn, code
        case ModelReplied(turn=turn, message=message) if message.text:
            yield turn, message.text
        case RunEnded(turn=turn, printed=printed) if printed:
            yield turn, printed
        case TurnEnded(turn=turn, outcome=Ok(value=str(value)) | Proposed(value=str(value))):
            yield turn, value
        case HistoryCompacted(through=turn, summary=summary):
            yield turn, summary
        case _:
            return


_SCHEMA = [
    part
    for part in (resources.files(__package__) / "sql" / "search.sql").read_text().split(";")
    if part.strip()
]
