"""The SQLite database: opening it, its queries, and what its errors mean."""

import contextlib
import os
import re
import sqlite3
from pathlib import Path

from holdfast.core.errors import JournalDamaged, StoreError, StoreUnavailable

APPLICATION_ID = 0x484F4C44  # "HOLD"
VERSION = 1
PAGE_BYTES = 4096
"""Of a new database. With 8192, an append takes a tenth longer, and a load and a group of fifty take a tenth less."""
CHECKPOINT_PAGES = 4000
LOCK_TIMEOUT_SECONDS = 10.0
_NO_FILE = "no file"
_SQL_FILES = Path(__file__).with_name("sql")
_PRIMARY_TABLES = ("event", "blob", "tombstone")
"""The tables that cannot be rebuilt from others."""


def load_queries() -> dict[str, str]:
    """Load the statements of `sql/queries.sql` by name."""
    text = _SQL_FILES.joinpath("queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: _without_comments(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def connect(path: Path, *, timeout_seconds: float = LOCK_TIMEOUT_SECONDS) -> sqlite3.Connection:
    """Open a connection with explicit transactions and durable commits."""
    # check_same_thread is off because one thread can close a connection that another one used.
    connection = sqlite3.connect(path, isolation_level=None, timeout=timeout_seconds, check_same_thread=False)
    connection.text_factory = _text  # a damaged string is a wrong id or name, not a reason to fail
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except UnicodeDecodeError as problem:  # an error message about a damaged schema can be damaged too
        connection.close()
        raise _damage("the schema cannot be read") from problem
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA secure_delete = ON")  # erase deleted data from the file
    return connection


def prepare(path: Path) -> None:
    """Create the database, or check that it is ours. Raises sqlite3.DatabaseError if it is damaged."""
    create_private(path)
    connection = connect(path)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        schema = _SQL_FILES.joinpath("schema.sql").read_text()
        if application == APPLICATION_ID and version == VERSION:
            _check_whole(connection, path, schema)
            return
        if application not in (0, APPLICATION_ID) or version > VERSION:
            raise StoreUnavailable(
                f"{str(path)!r} was written by another program or a newer version of Holdfast (schema {version})",
                hint="upgrade Holdfast, or set HOLDFAST_HOME to another folder",
            )
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(
            f"BEGIN IMMEDIATE; {schema} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
    finally:
        connection.close()


def explain(problem: sqlite3.Error, path: Path) -> StoreError:
    """Translate an error of SQLite for the user."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if is_damage(problem):
        return JournalDamaged(
            f"the database {str(path)!r} is damaged: {problem}",
            hint="start Holdfast again: it saves what can be read and moves the old file aside",
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(path)):
        return StoreUnavailable(
            "the disk is full; the last step was not recorded, everything before it was",
            hint="free some disk space and try again; a resumed session repeats no call that is on record",
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreUnavailable(
            f"another process keeps {str(path)!r} locked",
            hint="if a process was suspended during a write, continue or end it",
        )
    return StoreUnavailable(
        f"the database {str(path)!r} cannot be used: {problem}",
        hint="check the disk and the file; nothing was changed",
    )


def identify(path: str) -> object:
    """Identify the file at a path, if there is one."""
    # Not the log: a stat of a file that is being written makes the next write slower.
    try:
        found = os.stat(path)
    except OSError:
        return _NO_FILE
    return found.st_dev, found.st_ino


def is_damage(problem: sqlite3.Error) -> bool:
    """Whether SQLite reports that the file is damaged."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def create_private(path: Path) -> None:
    """Create a database file with mode 0600, or fix its mode. SQLite gives its log and shared memory the same mode."""
    # O_EXCL, because a file that SQLite has open in this process must never be opened by anything else: closing any
    # descriptor of a file drops all POSIX locks of the process on it, including SQLite's.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if path.stat().st_mode & 0o777 != 0o600:
        path.chmod(0o600)


def _is_full(path: Path) -> bool:
    # Without space for its shared memory, SQLite reports an I/O error.
    with contextlib.suppress(OSError):
        return os.statvfs(path.parent).f_bavail == 0
    return False


def _check_whole(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    """Recreate missing derived tables and indexes; `index` checks their contents. Primary tables must exist."""
    parts = set(re.findall(r"IF NOT EXISTS (\w+)", schema))
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    lost = sorted(parts - there)
    if primary := [name for name in lost if name in _PRIMARY_TABLES]:
        raise StoreUnavailable(
            f"{str(path)!r} lacks the tables {', '.join(primary)}: another program changed it",
            hint="restore a backup of the file, or move it away and import your exports",
        )
    if lost:
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {schema} COMMIT;")
        except sqlite3.IntegrityError as problem:
            raise _damage("two rows have the same position") from problem
    if not _columns_of(schema) <= set(connection.execute(_COLUMNS)):
        raise _damage("a table has unexpected columns")
    connection.execute("SELECT count(*) FROM (SELECT 1 FROM event LIMIT 1)")


_COLUMNS = """SELECT part.name, field.name, field.type, field."notnull", field.dflt_value, field.pk
FROM sqlite_master AS part, pragma_table_info(part.name) AS field WHERE part.type = 'table'"""


def _columns_of(schema: str) -> set[tuple[object, ...]]:
    """List the columns of a schema. SQLite takes a damaged column name for another column."""
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
