"""Access to the files of a session by its id. The session need not be open, and no id or path leads outside its folder.

    folder = holdfast.workspace.create()
    holdfast.workspace.write(folder.session, "data/in.csv", "a,b\\n")
    holdfast.workspace.read(folder.session, "data/out.csv")

An open session offers the same as `session.workspace`. To run code there, use `Runtime.sandbox(session)`.
"""

import os
from pathlib import Path

from holdfast import world
from holdfast.core import Change, Clock, SessionId, SystemClock, Value, check_session_id, new_session_id
from holdfast.core.errors import SessionNotFound
from holdfast.store import Home, remove_tree
from holdfast.world import FolderWorld, links_in

__all__ = [
    "Workspace",
    "copy_files_in",
    "copy_files_out",
    "create",
    "delete",
    "get",
    "links_in",
    "list_files",
    "read",
    "remove",
    "write",
]


class Workspace(Value):
    """The folder of a session."""

    session: SessionId
    path: Path


def create(session: str | None = None, *, home: Home | None = None, clock: Clock | None = None) -> Workspace:
    """The workspace of a session, created if it does not exist. Without an id, a new one is chosen. Raises InvalidId."""
    home = home or Home.default()
    id = check_session_id(session) if session is not None else new_session_id(clock or SystemClock())
    home.prepare_session(id)
    path = home.workspace(id)
    path.mkdir(mode=0o700, exist_ok=True)
    return Workspace(session=id, path=path)


def get(session: str, *, home: Home | None = None) -> Workspace:
    """The existing workspace of a session. Raises InvalidId, SessionNotFound."""
    id = check_session_id(session)
    path = (home or Home.default()).workspace(id)
    if not path.is_dir():
        raise SessionNotFound(
            f"session {id} has no workspace of its own", hint="create it with holdfast.workspace.create(id)"
        )
    return Workspace(session=id, path=path)


def list_files(
    session: str, pattern: str = "**/*", *, include_hidden: bool = False, home: Home | None = None
) -> tuple[str, ...]:
    """The files that match a glob, sorted, with POSIX separators. Dot files need `include_hidden` or the dot in the glob."""
    return world.list_files(_world(session, home), pattern, include_hidden=include_hidden)


def read(session: str, path: str, *, home: Home | None = None) -> bytes:
    """The content of a file."""
    return _world(session, home).read(path)


def write(
    session: str, path: str, content: bytes | str, *, overwrite: bool = True, home: Home | None = None
) -> Change:
    """Create or replace a file and its parent folders. Text is written as UTF-8."""
    return _world(session, home).write(path, content, overwrite=overwrite)


def remove(
    session: str, path: str, *, recursive: bool = False, home: Home | None = None
) -> tuple[Change, ...]:
    """Remove a file, or with `recursive` a folder and everything in it."""
    return _world(session, home).delete(path, recursive=recursive)


def copy_files_in(
    session: str, source: Path, path: str, *, overwrite: bool = False, home: Home | None = None
) -> tuple[Change, ...]:
    """Copy a file or folder from the host into the workspace. Symlinks in it are skipped: `links_in` lists them."""
    return _world(session, home).copy_in(source, path, overwrite=overwrite)


def copy_files_out(
    session: str, path: str, destination: Path, *, overwrite: bool = False, home: Home | None = None
) -> tuple[Path, ...]:
    """Copy a file or folder from the workspace to the host."""
    return _world(session, home).copy_out(path, destination, overwrite=overwrite)


def delete(session: str, *, home: Home | None = None) -> None:
    """Delete the workspace of a session, with every copy of its files that the session made for a sandbox or a commit.

    Deleting it twice is not an error; an invalid id is. The session's journal stays: `holdfast delete` removes that too.
    """
    home, id = home or Home.default(), check_session_id(session)
    own = home.session_folder(id)
    for path in (home.workspace(id), own / "view"):
        if path.is_dir() and os.path.realpath(path) == str(path):  # never delete through a symlink
            remove_tree(path)
    if os.path.realpath(own) == str(own):
        (own / "commit.undo").unlink(missing_ok=True)
    home.stat_cache(id).unlink(missing_ok=True)


def _world(session: str, home: Home | None) -> FolderWorld:
    return FolderWorld(get(session, home=home).path)
