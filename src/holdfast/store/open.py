"""Opening the store of a home. The one place that names a backend."""

from holdfast.core import Clock
from holdfast.store.contract import Redact, Store
from holdfast.store.home import Home
from holdfast.store.sqlite.store import SqliteStore


async def open_store(home: Home, *, clock: Clock, redact: Redact = bytes) -> Store:
    """Open the store of a home and create what is missing. `redact` processes the bytes of every event first."""
    return await SqliteStore.start(home, clock=clock, redact=redact)
