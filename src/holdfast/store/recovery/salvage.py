"""Salvage: a damaged database is read row by row into a new one; the old one is set aside, never overwritten.

Traces: the folders of sessions, by which it is known that there was one when the database says nothing of it any more.
"""

import os
import sqlite3
from pathlib import Path

import msgspec

import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.index as index
from holdfast.core import SessionId, check_session_id, pluralize
from holdfast.core.errors import InvalidId, JournalDamaged
from holdfast.store.home import Home, private_folder, sync_folder
from holdfast.store.recovery.recovered_rows import RecoveredRows, classify_rows
from holdfast.store.recovery.sqlite_pages import rows
from holdfast.store.recovery.wal_frames import has_lost_commits
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.sessions import list_sessions
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState, empty_summary


def sessions_with_folders(home: Home) -> dict[SessionId, SummaryState]:
    """A line for each session that has a folder: it had one event at least, and was active when its folder was last changed."""
    lines: dict[SessionId, SummaryState] = {}
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
    """Whether it is not merely a place to ask in: a team's member has no more, and its record is begun anew by itself."""
    inside = list(folder.iterdir())
    return [each.name for each in inside] != ["escalations"] or any(inside[0].iterdir())


_BESIDE = ("", "-wal", "-shm")


def needs_salvage(home: Home) -> bool:
    """Whether the database is damaged or gone. A thorough look only where something went wrong before."""
    path = home.database
    if is_gone(home):
        # SQLite would begin anew, and throw a log that is left away together with the commits in it.
        return _has_content(Path(f"{path}-wal")) or bool(sessions_with_folders(home))
    if has_lost_commits(Path(f"{path}-wal")):  # before SQLite opens it, and forgets them
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
    """Whether there is no database, or an empty file in its place."""
    return not _has_content(home.database)


def damage_marker(home: Home) -> Path:
    """The file that a process leaves which met damage, for the next start."""
    return home.root / "holdfast.db-suspect"


def salvage(home: Home, *, now_ms: int) -> str:
    """Save what can be read; the line for the person. The caller made sure that nobody has the store open."""
    fresh, ready = home.root / "holdfast.db-new", _ready(home)
    _remove(fresh)
    what = "gone" if is_gone(home) else "damaged"
    try:
        kept, damaged = _refill(home, fresh)
        os.replace(fresh, ready)
    except BaseException:
        _remove(fresh)
        raise
    sync_folder(home.root)
    aside = finish(home, now_ms=now_ms)
    damage_marker(home).unlink(missing_ok=True)
    sound = pluralize(kept - damaged, "session")
    return (
        f"the database was {what}: {sound} saved, {damaged} damaged; what was there is in {str(aside)!r}. "
        "`holdfast verify --all` says what is missing"
    )


def finish(home: Home, *, now_ms: int) -> Path | None:
    """Put the new database in its place, also where a crash came in between. None when there is none."""
    ready = _ready(home)
    if not ready.exists():
        return None
    aside = private_folder(home.root / f"damaged-{now_ms}")
    for suffix in _BESIDE:  # the log too: over another database it would destroy it
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
        return False  # pages that are only in the log make the file look short
    (count,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return bool(path.stat().st_size < count * size)


def _remove(path: Path) -> None:
    for suffix in _BESIDE:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _has_content(path: Path) -> bool:
    return os.path.lexists(path) and (not path.is_file() or path.stat().st_size > 0)


def _refill(home: Home, fresh: Path) -> tuple[int, int]:
    old = home.database
    remains = classify_rows(rows(old, Path(f"{old}-wal")))
    if not remains.events and not remains.lines and old.exists() and old.stat().st_size > 65536:
        raise JournalDamaged(
            f"nothing in {str(old)!r} can be read, so it was left as it is",
            hint="bring it back from a backup, or move it away to begin with an empty store",
        )
    for session, line in sessions_with_folders(home).items():
        if session not in remains.graves:
            remains.lines.setdefault(session, line)
    database.prepare(fresh)
    connection = database.connect(fresh)
    try:
        connection.execute("BEGIN IMMEDIATE")
        _fill(connection, remains)
        kept = index.rebuild(Transaction(connection), noted=remains.lines)
        damaged = sum(line.is_damaged for line in list_sessions(connection, limit=None, folder=None))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return kept, damaged


def _fill(connection: sqlite3.Connection, remains: RecoveredRows) -> None:
    last = 0
    for event in remains.journal():
        last = max(event.row, last + 1)  # two rows with one number are damage; they stay in their order
        place = (last, event.session, event.seq, event.at_ms, event.hash, event.body)
        connection.execute(SQL["salvage_event"], place)
    for digest, size, content, _, put_ms in remains.blobs.values():
        connection.execute(SQL["put_blob"], (digest, size, content, put_ms))
    for grave in remains.graves.values():
        connection.execute(SQL["bury"], grave.columns)
