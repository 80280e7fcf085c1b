"""The SQLite file: how it is opened, what is asked of it, and what its complaints mean."""

import contextlib
import os
import re
import sqlite3
from importlib import resources
from pathlib import Path

from holdfast.core.errors import JournalDamaged, StoreError, StoreUnavailable

APPLICATION_ID = 0x484F4C44  # "HOLD"
VERSION = 1
PAGE_BYTES = 4096
"""Of a new database. Measured beside 8192: there one append takes a tenth longer, and a load and a group of fifty a tenth less."""
CHECKPOINT_PAGES = 4000
LOCK_TIMEOUT_SECONDS = 10.0
_NOTHING = "nothing"
_TRUTH = ("event", "blob", "tombstone")
"""Tables that nothing else could be made of again."""


def load_queries() -> dict[str, str]:
    """The statements of `sql/queries.sql` by name."""
    text = (resources.files(__package__) / "sql" / "queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: _without_comments(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def connect(path: Path, *, timeout_seconds: float = LOCK_TIMEOUT_SECONDS) -> sqlite3.Connection:
    """A connection that commits when told to and whose commits are on disk when they return."""
    # check_same_thread is off because the thread that closes a connection may be another than the one that used it.
    connection = sqlite3.connect(path, isolation_level=None, timeout=timeout_seconds, check_same_thread=False)
    connection.text_factory = _text  # a damaged text is a wrong id or name, and no reason to end
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except UnicodeDecodeError as problem:  # what SQLite has to say of a damaged schema may be damaged too
        connection.close()
        raise _damage("the schema cannot be read") from problem
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA secure_delete = ON")  # what is deleted is gone from the file as well
    return connection


def prepare(path: Path) -> None:
    """Create the database or make sure that it is one of ours; raises sqlite3.DatabaseError where it is damaged."""
    create_private(path)
    connection = connect(path)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        schema = (resources.files(__package__) / "sql" / "schema.sql").read_text()
        if application == APPLICATION_ID and version == VERSION:
            _check_whole(connection, path, schema)
            return
        if application not in (0, APPLICATION_ID) or version > VERSION:
            raise StoreUnavailable(
                f"{str(path)!r} was written by another program or a newer Holdfast (version {version})",
                hint="update Holdfast, or choose another folder with HOLDFAST_HOME",
            )
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(
            f"BEGIN IMMEDIATE; {schema} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
    finally:
        connection.close()


def explain(problem: sqlite3.Error, path: Path) -> StoreError:
    """What a complaint of SQLite means to a person."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if is_damage(problem):
        return JournalDamaged(
            f"the database {str(path)!r} is damaged: {problem}",
            hint="start Holdfast again: it saves what can be read and sets the old file aside",
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(path)):
        return StoreUnavailable(
            "the disk is full; nothing of this was recorded", hint="make room and try again"
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreUnavailable(
            f"another process keeps {str(path)!r} locked",
            hint="a process stopped in the middle of a write has to be continued or ended",
        )
    return StoreUnavailable(
        f"the database {str(path)!r} does not answer: {problem}",
        hint="look at the disk and at what lies there; nothing was changed",
    )


def identify(path: str) -> object:
    """Which file lies there, if any."""
    # Not the log: to look at a file that is being written to makes the next write to it slower.
    try:
        found = os.stat(path)
    except OSError:
        return _NOTHING
    return found.st_dev, found.st_ino


def is_damage(problem: sqlite3.Error) -> bool:
    """Whether SQLite says that the file is not what it wrote."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def create_private(path: Path) -> None:
    """Make sure that a database file is there and 0600; the log and the shared memory beside it take over its mode."""
    # Exclusively, because a file that SQLite has open in this process must never be opened beside it: closing any
    # descriptor of a file drops all locks that the process has on it, and SQLite's locks are of that kind.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if path.stat().st_mode & 0o777 != 0o600:
        path.chmod(0o600)


def _is_full(path: Path) -> bool:
    # Where there is no room for its shared memory, SQLite speaks of an I/O error.
    with contextlib.suppress(OSError):
        return os.statvfs(path.parent).f_bavail == 0
    return False


def _check_whole(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    """Make again what is derived and was dropped; whether it is right, the index finds out. The rest must be there."""
    parts = set(re.findall(r"IF NOT EXISTS (\w+)", schema))
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    lost = sorted(parts - there)
    if truth := [name for name in lost if name in _TRUTH]:
        raise StoreUnavailable(
            f"{str(path)!r} has lost {', '.join(truth)}: somebody changed it with another program",
            hint="put a copy of this file back, or set it aside and import what was exported",
        )
    if lost:
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {schema} COMMIT;")
        except sqlite3.IntegrityError as problem:
            raise _damage("two rows are in one place") from problem
    if not _columns_of(schema) <= set(connection.execute(_COLUMNS)):
        raise _damage("a table has other columns than it was made with")
    connection.execute("SELECT count(*) FROM (SELECT 1 FROM event LIMIT 1)")


_COLUMNS = """SELECT part.name, field.name, field.type, field."notnull", field.dflt_value, field.pk
FROM sqlite_master AS part, pragma_table_info(part.name) AS field WHERE part.type = 'table'"""


def _columns_of(schema: str) -> set[tuple[object, ...]]:
    """What the tables of a schema are made of: SQLite takes a damaged name of a column for another column."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return set(connection.execute(_COLUMNS))


def _damage(message: str) -> sqlite3.DatabaseError:
    problem = sqlite3.DatabaseError(message)
    problem.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return problem


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _without_comments(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--")).strip().rstrip(";")


SQL = load_queries()
