"""What survives a crash: journals, blobs, the session list, search and leases. All other packages build on it."""

from holdfast.store.blobs.copy_out import read_span
from holdfast.store.contract import (
    Arrival,
    BlobInfo,
    BlobIngest,
    BlobSource,
    BlobStore,
    Follower,
    Hasher,
    Inspection,
    Journal,
    JournalProblem,
    LeaseHolder,
    Passage,
    SessionPage,
    SessionShare,
    SessionSummary,
    Shares,
    Store,
    StoreWatch,
    StreamedEvent,
    WaitingEscalation,
)
from holdfast.store.file_watch import FileWatch
from holdfast.store.home import (
    Home,
    create_private,
    private_folder,
    replace_private,
    sync_folder,
    write_private,
)
from holdfast.store.memory import MemoryStore
from holdfast.store.names import chosen_name, shortened_note
from holdfast.store.open import open_store
from holdfast.store.private_files import locked, read_own, read_plain, remove
from holdfast.store.prune import PruneReport, prune
from holdfast.store.redaction import MIN_SECRET_LENGTH, Redactor
from holdfast.store.rmtree import remove_tree
from holdfast.store.shared_access import open_when_released, tail, wait_until_released

__all__ = [
    "MIN_SECRET_LENGTH",
    "Arrival",
    "BlobInfo",
    "BlobIngest",
    "BlobSource",
    "BlobStore",
    "FileWatch",
    "Follower",
    "Hasher",
    "Home",
    "Inspection",
    "Journal",
    "JournalProblem",
    "LeaseHolder",
    "MemoryStore",
    "Passage",
    "PruneReport",
    "Redactor",
    "SessionPage",
    "SessionShare",
    "SessionSummary",
    "Shares",
    "Store",
    "StoreWatch",
    "StreamedEvent",
    "WaitingEscalation",
    "chosen_name",
    "create_private",
    "locked",
    "open_store",
    "open_when_released",
    "private_folder",
    "prune",
    "read_own",
    "read_plain",
    "read_span",
    "remove",
    "remove_tree",
    "replace_private",
    "shortened_note",
    "sync_folder",
    "tail",
    "wait_until_released",
    "write_private",
]
