"""What survives a crash: journals, the list of sessions, search and leases. Above it, everything; below it, a disk."""

from holdfast.store.company import open_when_free, read_along, until_free
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
from holdfast.store.embedded import EmbeddedStore
from holdfast.store.exchange import export_session, import_session
from holdfast.store.home import Home, private_folder, replace_private, sync_folder, write_private
from holdfast.store.inspection import Inspection, Problem
from holdfast.store.memory import MemoryStore
from holdfast.store.naming import chosen_name
from holdfast.store.notice import resume_notice
from holdfast.store.passages import search
from holdfast.store.pruning import PruneReport, prune
from holdfast.store.redaction import SHORTEST_SECRET, Redactor
from holdfast.store.spans import read_span
from holdfast.store.trees import remove_tree
from holdfast.store.upkeep import rebuild_index, verify, verify_all
from holdfast.store.wordfile import Passage

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
    "read_span",
    "rebuild_index",
    "remove_tree",
    "replace_private",
    "resume_notice",
    "search",
    "sync_folder",
    "until_free",
    "verify",
    "verify_all",
    "write_private",
]
