"""What survives a crash: journals, the list of sessions, search and leases. Above it, everything; below it, a disk."""

from holdfast.store.contract import Follower, Holder, Journal, SessionSummary, Store
from holdfast.store.embedded import EmbeddedStore
from holdfast.store.fold import fold, standing
from holdfast.store.home import Home
from holdfast.store.memory import MemoryStore

__all__ = [
    "EmbeddedStore",
    "Follower",
    "Holder",
    "Home",
    "Journal",
    "MemoryStore",
    "SessionSummary",
    "Store",
    "fold",
    "standing",
]
