"""Starting: what is done to a home before its store is open, one process at a time."""

import errno
import sqlite3

import holdfast.store.sqlite.database as database
from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store.home import Home
from holdfast.store.recovery.salvage import damage_marker, finish, is_gone, needs_salvage, salvage
from holdfast.store.sanity import is_time
from holdfast.store.sqlite.process_locks import ProcessLock, any_process_open, exclusive_lock


def prepare(home: Home, now_ms: int) -> tuple[ProcessLock, tuple[str, ...]]:
    """Create what is missing, save what is damaged; our presence, and what the person should be told."""
    if not is_time(now_ms):
        raise StoreUnavailable(
            "this machine's clock says that it is before 1970 or after the year 9999",
            hint="set it and try again; what is recorded says when it happened",
        )
    home.prepare()
    notices: tuple[str, ...] = ()
    try:
        with exclusive_lock(home.root / ".starting"):
            if not any_process_open(home.holders):
                _collect_drafts(home)
                finish(home, now_ms=now_ms)
                if needs_salvage(home):
                    notices = (salvage(home, now_ms=now_ms),)
            elif is_gone(home):
                # A new file in its place would hide what the other process still writes to the old one.
                raise StoreUnavailable(
                    f"{str(home.database)!r} was taken away while another process has it open",
                    hint="put it back, or end that process; the next start says what is left",
                )
            database.prepare(home.database)
            presence = ProcessLock(home.holders)
    except (sqlite3.Error, OSError) as problem:
        raise explain(home, problem) from problem
    presence.sweep()
    return presence, notices


def explain(home: Home, problem: sqlite3.Error | OSError) -> StoreError:
    """What a complaint of SQLite or of the system means; damage is noted down, so that the next start looks thoroughly."""
    if isinstance(problem, sqlite3.Error):
        if database.is_damage(problem):
            damage_marker(home).touch(mode=0o600)
        return database.explain(problem, home.database)
    return StoreUnavailable(
        f"the disk does not do what the store asks of it: {problem.strerror}, {problem.filename!r}",
        hint=_way_out(problem),
    )


def _way_out(problem: OSError) -> str:
    match problem.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "make room and try again"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "make it writable for you, or choose another folder with HOLDFAST_HOME"
        case errno.EISDIR | errno.ENOTDIR | errno.ELOOP | errno.ENOENT | errno.EEXIST:
            return "something else lies there; move it away and try again"
        case _:
            return "mend the disk and try again"


def _collect_drafts(home: Home) -> None:
    """What a crash left half-written; nobody else is here who could be writing it."""
    for draft in (*home.blobs.glob(".*"), *home.root.glob(".key-*"), *home.holders.glob(".*")):
        draft.unlink(missing_ok=True)
