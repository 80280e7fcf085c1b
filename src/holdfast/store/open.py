"""Opening a store. The one place that names a backend."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.core import Clock
from holdfast.core.errors import EngineMissing, InvalidInput
from holdfast.store.contract import DatabaseLogin, Redact, Store, StoreStatus, WorkStore
from holdfast.store.home import Home
from holdfast.store.sqlite.store import SqliteStore

STORE_VARIABLE = "HOLDFAST_STORE"
"""Names the store of every command; without it, it is the database in the data directory."""
SCHEMES = ("postgresql://", "postgres://")


async def open_store(home: Home, *, clock: Clock, redact: Redact = bytes, url: str | None = None) -> Store:
    """Open the store at an address, by default that of `$HOLDFAST_STORE`, else the one in the home, and create what is missing.

    An empty address is the one in the home. `redact` processes the bytes of every event first. Raises StoreUnavailable, InvalidInput.
    """
    url = os.environ.get(STORE_VARIABLE) if url is None else url
    if not url:
        return await SqliteStore.start(home, clock=clock, redact=redact)
    return await open_work_store(home, url, clock=clock, redact=redact)


async def open_work_store(home: Home, url: str, *, clock: Clock, redact: Redact = bytes) -> WorkStore:
    """Open a store that workers share, by its address. Raises StoreUnavailable, InvalidInput."""
    _check_address(url)
    with _extra_explained():
        from holdfast.store.postgres.store import PostgresStore
    return await PostgresStore.start(url, home=home, clock=clock, redact=redact)


async def connect_database(url: str, *, is_admin: bool = False) -> Any:
    """Open a connection to the database of a store, with its schema as the search path. For the engine of the workers.

    Any: asyncpg has no annotations.
    """
    _check_address(url)
    with _extra_explained():
        from holdfast.store.postgres.database import connect
    return await connect(url, is_admin=is_admin)


async def register_enum(connection: Any, name: str) -> None:
    """Tell a connection to the database an enum that statements of the engine use. It works without, and is slower."""
    from holdfast.store.postgres.types import register_enum as register

    await register(connection, name)


async def migrate_store(url: str) -> tuple[str, ...]:
    """Bring the store at an address to the newest schema, and return the names of the steps that were missing."""
    _check_address(url)
    with _extra_explained():
        from holdfast.store.postgres.migrations import migrate
    return tuple(f"{one.number:04} {one.title}" for one in await migrate(url))


def store_command(action: str, url: str) -> str:
    """The command that does something with the store at an address, without its password."""
    with _extra_explained():
        from holdfast.store.postgres.database import command_for
    return command_for(action, url)


async def put_blobs_setting(url: str, blobs: str) -> None:
    """Say where the store at an address keeps large blobs: `s3://bucket/prefix` or `file:///folder`. Raises InvalidInput."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    await tenants.put_blobs_setting(url, blobs)


async def engine_of(url: str) -> str:
    """The name of the engine that carries the jobs of the store at an address. Raises StoreUnavailable."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    return await tenants.engine_of(url)


async def put_engine_setting(url: str, engine: str) -> None:
    """Say which engine carries the jobs of the store at an address. For the package of the engines."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    await tenants.put_engine_setting(url, engine)


def database_login(url: str) -> DatabaseLogin:
    """How another library opens a connection to the database of a store. For the engine of the workers."""
    _check_address(url)
    with _extra_explained():
        from holdfast.store.postgres.database import login
    return login(url)


async def store_status(url: str) -> StoreStatus:
    """Look at the store at an address. Raises StoreUnavailable."""
    _check_address(url)
    with _extra_explained():
        from holdfast.store.postgres.status import read_status
    return await read_status(url)


async def add_tenant(url: str, name: str) -> None:
    """Create a tenant in the store at an address. Raises InvalidInput if it exists, StoreUnavailable."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    await tenants.add_tenant(url, name)


async def remove_tenant(url: str, name: str) -> None:
    """Remove a tenant of the store at an address, with everything it has. Raises InvalidInput, StoreUnavailable."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    await tenants.remove_tenant(url, name)


async def list_tenants(url: str) -> tuple[str, ...]:
    """The names of the tenants of the store at an address. Raises StoreUnavailable."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    return await tenants.list_tenants(url)


async def separate_tenants(url: str, tables: Sequence[str]) -> None:
    """Separate the tenants in tables of the engine of the workers. Raises StoreUnavailable."""
    _check_address(url)
    with _extra_explained():
        import holdfast.store.postgres.tenants as tenants
    await tenants.separate_tenants(url, tables)


def _check_address(url: str) -> None:
    if not url.startswith(SCHEMES):
        # The text is not repeated: it may hold a password.
        raise InvalidInput(
            f"this is not the address of a store: it does not begin with {SCHEMES[0]}",
            hint="for example: postgresql://user@host/database",
        )


@contextmanager
def _extra_explained() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"a store in PostgreSQL needs {problem.name!r}",
            hint="install it with: pip install 'holdfast[scale]'",
        ) from problem
