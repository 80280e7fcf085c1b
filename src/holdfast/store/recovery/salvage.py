"""Salvage: copies the readable rows of a damaged database into a new one. The old database is moved aside, never
overwritten. A session of which only the folder is left is listed as damaged.
"""

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.index as index
from holdfast.core import SessionId, check_session_id, pluralize
from holdfast.core.errors import InvalidId, JournalDamaged
from holdfast.store.home import Home, private_folder, sync_folder
from holdfast.store.recovery.wal_frames import has_lost_commits
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.sessions import list_sessions
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState, empty_summary

if TYPE_CHECKING:
    from holdfast.store.recovery.recovered_rows import RecoveredRows


def sessions_with_folders(home: Home) -> dict[SessionId, SummaryState]:
    """Summarize each session that has a folder: it had at least one event and was last active when its folder changed.

    None where the folder may be of a session in a store that machines share.
    """
    lines: dict[SessionId, SummaryState] = {}
    if home.serves_shared_store():
        return lines
    for folder in sorted((home.root / "sessions").glob("*/")):
        try:
            session = check_session_id(folder.name)
        except InvalidId:
            continue
        if not _was_used(folder):
            continue
        changed_ms = max(int(folder.stat().st_mtime * 1000), 0)
        line = empty_summary(session)
        summary = msgspec.structs.replace(line.summary, events=1, created_ms=changed_ms, active_ms=changed_ms)
        lines[session] = msgspec.structs.replace(line, summary=summary)
    return lines


def _was_used(folder: Path) -> bool:
    """Whether a folder contains more than an empty `escalations` folder, which is all that an external agent needs."""
    inside = list(folder.iterdir())
    return [each.name for each in inside] != ["escalations"] or any(inside[0].iterdir())


_SUFFIXES = ("", "-wal", "-shm")


def needs_salvage(home: Home) -> bool:
    """Whether the database is damaged or missing. The check is thorough only if damage was suspected before."""
    path = home.database
    if is_gone(home):
        # SQLite would create a new database and discard a remaining log with the commits in it.
        return _has_content(Path(f"{path}-wal")) or bool(sessions_with_folders(home))
    if has_lost_commits(Path(f"{path}-wal")):  # before SQLite opens the log and ignores them
        return True
    try:
        database.prepare(path)
        connection = database.connect(path)
        try:
            if _is_truncated(connection, path):
                return True
            if not damage_marker(home).exists():
                return False
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError as problem:
        if database.is_damage(problem):
            return True
        raise
    damage_marker(home).unlink(missing_ok=True)
    return bool(found != "ok")


def is_gone(home: Home) -> bool:
    """Whether the database is missing or empty."""
    return not _has_content(home.database)


def damage_marker(home: Home) -> Path:
    """The file that marks suspected damage for the next start."""
    return home.root / "holdfast.db-suspect"


def salvage(home: Home, *, now_ms: int) -> str:
    """Save what can be read, and return a notice for the user. No process may have the store open."""
    fresh, ready = home.root / "holdfast.db-new", _ready(home)
    _remove(fresh)
    what = "missing" if is_gone(home) else "damaged"
    try:
        kept, damaged = _refill(home, fresh)
        os.replace(fresh, ready)
    except BaseException:
        _remove(fresh)
        raise
    sync_folder(home.root)
    aside = finish(home, now_ms=now_ms)
    damage_marker(home).unlink(missing_ok=True)
    intact = pluralize(kept - damaged, "session")
    return (
        f"the database was {what}: {intact} saved, {damaged} damaged; the old files are in {str(aside)!r}. "
        "`holdfast verify --all` shows what is missing"
    )


def finish(home: Home, *, now_ms: int) -> Path | None:
    """Replace the old database with the new one, also after a crash in between. None if there is no new one."""
    ready = _ready(home)
    if not ready.exists():
        return None
    aside = private_folder(home.root / f"damaged-{now_ms}")
    for suffix in _SUFFIXES:  # including the log, which would destroy another database
        old = Path(f"{home.database}{suffix}")
        if old.exists():
            os.replace(old, aside / old.name)
    sync_folder(aside)
    sync_folder(home.root)
    os.replace(ready, home.database)
    sync_folder(home.root)
    return aside


def _ready(home: Home) -> Path:
    return home.root / "holdfast.db-ready"


def _is_truncated(connection: sqlite3.Connection, path: Path) -> bool:
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return False  # pages that are only in the log make the file look truncated
    (count,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return bool(path.stat().st_size < count * size)


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _has_content(path: Path) -> bool:
    return os.path.lexists(path) and (not path.is_file() or path.stat().st_size > 0)


def _refill(home: Home, fresh: Path) -> tuple[int, int]:
    # Here, because hardly any start finds damage.
    from holdfast.store.recovery.recovered_rows import classify_rows
    from holdfast.store.recovery.sqlite_pages import read_rows

    old = home.database
    recovered = classify_rows(read_rows(old, Path(f"{old}-wal")))
    if not recovered.events and not recovered.lines and old.exists() and old.stat().st_size > 65536:
        raise JournalDamaged(
            f"{str(old)!r} contains no readable data and was left unchanged",
            hint="restore it from a backup, or move it away to start with an empty store",
        )
    for session, line in sessions_with_folders(home).items():
        if session not in recovered.tombstones:
            recovered.lines.setdefault(session, line)
    database.prepare(fresh)
    connection = database.connect(fresh)
    try:
        connection.execute("BEGIN IMMEDIATE")
        _fill(connection, recovered)
        kept = index.rebuild(Transaction(connection), noted=recovered.lines)
        damaged = sum(line.is_damaged for line in list_sessions(connection, limit=None, folder=None))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return kept, damaged


def _fill(connection: sqlite3.Connection, recovered: "RecoveredRows") -> None:
    last = 0
    for event in recovered.journal():
        last = max(event.row, last + 1)  # two rows with the same number are damage; they keep their order
        place = (last, event.session, event.seq, event.at_ms, event.hash, event.body)
        connection.execute(SQL["salvage_event"], place)
    for digest, size, content, _, put_ms in recovered.blobs.values():
        connection.execute(SQL["put_blob"], (digest, size, content, put_ms))
    for tombstone in recovered.tombstones.values():
        connection.execute(SQL["write_tombstone"], tombstone.columns)
