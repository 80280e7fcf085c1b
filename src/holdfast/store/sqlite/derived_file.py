"""A derived SQLite file beside the database: folded from the events up to a row, and rebuilt if it is not of this database."""

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import holdfast.store.sqlite.database as database
from holdfast.store.sqlite.database import SQL


class opened_file:
    """A connection to a derived file, in a transaction that is committed at the end."""

    def __init__(self, path: Path, schema: Sequence[str]) -> None:
        database.create_private(path)
        self._schema = schema
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)

    def __enter__(self) -> sqlite3.Connection:
        try:
            # A crash may destroy the file: then it is rebuilt.
            self._connection.execute("PRAGMA synchronous = OFF")
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in self._schema:
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


def discard(path: Path) -> None:
    """Delete the file; the next use rebuilds it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)


def load_schema(name: str) -> list[str]:
    """The statements of a schema in `sql/`."""
    text = Path(__file__).with_name("sql").joinpath(name).read_text()
    return [part for part in text.split(";") if part.strip()]


def find_progress(connection: sqlite3.Connection, derived: sqlite3.Connection) -> int | None:
    """The row up to which the file is current: 0 if it is empty, None if it belongs to another database."""
    noted = derived.execute(SQL["search_progress"]).fetchone()
    if noted is None:
        return 0
    row, link = noted
    is_own = connection.execute(SQL["hash_of_row"], (row,)).fetchone() == (link,)
    return int(row) if is_own else None


def note_progress(derived: sqlite3.Connection, row: int, link: bytes) -> None:
    """Note the last event that the file includes."""
    derived.execute(SQL["forget_progress"])
    derived.execute(SQL["note_progress"], (row, link))
