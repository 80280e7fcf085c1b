"""Startup: prepares a home before its store is opened, in one process at a time."""

import errno
import sqlite3

import holdfast.store.sqlite.database as database
from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store.home import Home
from holdfast.store.recovery.salvage import damage_marker, finish, is_gone, needs_salvage, salvage
from holdfast.store.sanity import is_time
from holdfast.store.sqlite.process_locks import ProcessLock, any_process_open, exclusive_lock


def prepare(home: Home, now_ms: int) -> tuple[ProcessLock, tuple[str, ...]]:
    """Create what is missing and salvage what is damaged. Returns the process lock and notices for the user."""
    if not is_time(now_ms):
        raise StoreUnavailable(
            "the clock of this machine is before 1970 or after the year 9999",
            hint="set the clock and try again; every event records its time",
        )
    home.prepare()
    notices: tuple[str, ...] = ()
    try:
        with exclusive_lock(home.root / ".starting"):
            if not any_process_open(home.process_locks):
                _remove_drafts(home)
                finish(home, now_ms=now_ms)
                if needs_salvage(home):
                    notices = (salvage(home, now_ms=now_ms),)
            elif is_gone(home):
                # A new file in its place would hide what the other process still writes to the old file.
                raise StoreUnavailable(
                    f"{str(home.database)!r} was removed while another process has it open",
                    hint="put it back, or end that process; the next start salvages what is left",
                )
            database.prepare(home.database)
            process_lock = ProcessLock(home.process_locks)
    except (sqlite3.Error, OSError) as problem:
        raise explain(home, problem) from problem
    process_lock.sweep()
    return process_lock, notices


def explain(home: Home, problem: sqlite3.Error | OSError) -> StoreError:
    """Translate an error of SQLite or the system for the user. Damage is marked, so that the next start checks thoroughly."""
    if isinstance(problem, sqlite3.Error):
        if database.is_damage(problem):
            damage_marker(home).touch(mode=0o600)
        return database.explain(problem, home.database)
    return StoreUnavailable(
        f"a disk operation of the store failed: {problem.strerror}, {problem.filename!r}",
        hint=_hint_for(problem),
    )


def _hint_for(problem: OSError) -> str:
    match problem.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "free some disk space and try again"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "make it writable, or set HOLDFAST_HOME to another folder"
        case errno.EISDIR | errno.ENOTDIR | errno.ELOOP | errno.ENOENT | errno.EEXIST:
            return "move away what is there and try again"
        case errno.EMFILE | errno.ENFILE:
            return "raise the limit on open files and try again: ulimit -n 1024"
        case _:
            return "check the disk and try again"


def _remove_drafts(home: Home) -> None:
    """Remove half-written files of a crash. No other process has the store open, so none is in use."""
    for draft in (*home.blobs.glob(".*"), *home.root.glob(".*key-*"), *home.process_locks.glob(".*")):
        draft.unlink(missing_ok=True)
