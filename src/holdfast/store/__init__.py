"""What survives a crash: journals, the list of sessions, search and leases. Above it, everything; below it, a disk."""

from holdfast.store.archive.transfer import export_session, import_session
from holdfast.store.blobs.copy_out import read_span
from holdfast.store.contract import (
    ContentIntake,
    Contents,
    ContentSource,
    Follower,
    Holder,
    Journal,
    Kept,
    SessionSummary,
    Store,
    Whole,
)
from holdfast.store.home import Home, private_folder, replace_private, sync_folder, write_private
from holdfast.store.memory import MemoryStore
from holdfast.store.private_files import read_own, read_plain, remove
from holdfast.store.prune import PruneReport, prune
from holdfast.store.recovery.inspect import Inspection, Problem
from holdfast.store.recovery.verify import rebuild_index, verify, verify_all
from holdfast.store.redaction import SHORTEST_SECRET, Redactor
from holdfast.store.rmtree import remove_tree
from holdfast.store.shared_access import open_when_free, read_along, until_free
from holdfast.store.sqlite.names import chosen_name
from holdfast.store.sqlite.search import Passage
from holdfast.store.sqlite.store import EmbeddedStore, search

__all__ = [
    "SHORTEST_SECRET",
    "ContentIntake",
    "ContentSource",
    "Contents",
    "EmbeddedStore",
    "Follower",
    "Holder",
    "Home",
    "Inspection",
    "Journal",
    "Kept",
    "MemoryStore",
    "Passage",
    "Problem",
    "PruneReport",
    "Redactor",
    "SessionSummary",
    "Store",
    "Whole",
    "chosen_name",
    "export_session",
    "import_session",
    "open_when_free",
    "private_folder",
    "prune",
    "read_along",
    "read_own",
    "read_plain",
    "read_span",
    "rebuild_index",
    "remove",
    "remove_tree",
    "replace_private",
    "search",
    "sync_folder",
    "until_free",
    "verify",
    "verify_all",
    "write_private",
]
