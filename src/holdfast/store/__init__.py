"""What survives a crash: journals, the list of sessions, search and leases. Above it, everything; below it, a disk."""

from holdfast.store.archive.transfer import export_session, import_session
from holdfast.store.blobs.copy_out import read_span
from holdfast.store.contract import (
    BlobIngest,
    BlobSource,
    Contents,
    Follower,
    Hasher,
    Journal,
    Kept,
    LeaseHolder,
    SessionSummary,
    Store,
)
from holdfast.store.home import Home, private_folder, replace_private, sync_folder, write_private
from holdfast.store.memory import MemoryStore
from holdfast.store.private_files import read_own, read_plain, remove
from holdfast.store.prune import PruneReport, prune
from holdfast.store.recovery.inspect import Inspection, Problem
from holdfast.store.recovery.verify import rebuild_index, verify, verify_all
from holdfast.store.redaction import SHORTEST_SECRET, Redactor
from holdfast.store.rmtree import remove_tree
from holdfast.store.shared_access import open_when_released, tail, wait_until_released
from holdfast.store.sqlite.names import chosen_name
from holdfast.store.sqlite.search import Passage
from holdfast.store.sqlite.store import SqliteStore, search

__all__ = [
    "SHORTEST_SECRET",
    "BlobIngest",
    "BlobSource",
    "Contents",
    "Follower",
    "Hasher",
    "Home",
    "Inspection",
    "Journal",
    "Kept",
    "LeaseHolder",
    "MemoryStore",
    "Passage",
    "Problem",
    "PruneReport",
    "Redactor",
    "SessionSummary",
    "SqliteStore",
    "Store",
    "chosen_name",
    "export_session",
    "import_session",
    "open_when_released",
    "private_folder",
    "prune",
    "read_own",
    "read_plain",
    "read_span",
    "rebuild_index",
    "remove",
    "remove_tree",
    "replace_private",
    "search",
    "sync_folder",
    "tail",
    "verify",
    "verify_all",
    "wait_until_released",
    "write_private",
]
