"""The files of one session in the data directory of this machine."""

from contextlib import suppress

from holdfast.core import SessionId
from holdfast.store.files.rmtree import remove_tree
from holdfast.store.home import Home


def remove_session_files(home: Home, session: SessionId) -> None:
    """Remove a session's folder, what a team's program recorded for it, copies of its files, and its stat cache."""
    for folder in (home.session_folder(session), *home.agent_homes(session), home.copies(session)):
        with suppress(OSError):
            remove_tree(folder)
    with suppress(OSError):
        home.stat_cache(session).unlink()
