"""Opening a store. The one place that names a backend."""

from holdfast.core import Clock
from holdfast.core.errors import EngineMissing, InvalidInput
from holdfast.store.contract import Redact, Store
from holdfast.store.home import Home
from holdfast.store.sqlite.store import SqliteStore

SCHEMES = ("postgresql://", "postgres://")


async def open_store(home: Home, *, clock: Clock, redact: Redact = bytes, url: str | None = None) -> Store:
    """Open the store of a home and create what is missing, or the store at an address.

    `redact` processes the bytes of every event first. Raises StoreUnavailable, InvalidInput.
    """
    if url is None:
        return await SqliteStore.start(home, clock=clock, redact=redact)
    if not url.startswith(SCHEMES):
        raise InvalidInput(
            f"{url!r} is not the address of a store", hint="for example: postgresql://user@host/database"
        )
    try:
        from holdfast.store.postgres.store import PostgresStore
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"a store in PostgreSQL needs {problem.name!r}",
            hint="install it with: pip install 'holdfast[scale]'",
        ) from problem
    return await PostgresStore.start(url, home=home, clock=clock, redact=redact)
