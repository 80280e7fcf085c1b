"""Tenants of one database: creating and listing them, and the role under which their separation counts.

Row-level security separates them. It does not count for a superuser, so processes take a role that owns nothing.
"""

from collections.abc import Sequence
from datetime import timedelta

import asyncpg

from holdfast.core.errors import InvalidInput, StoreUnavailable
from holdfast.store.postgres.database import (
    DEFAULT_TENANT,
    LOST,
    ROLE,
    SCHEMA,
    SQL,
    TENANT_SETTING,
    Result,
    Work,
    check_tenant,
    close_quickly,
    command_for,
    connect,
    explain,
    shown,
    split_tenant,
)
from holdfast.store.postgres.objects import BlobObjects
from holdfast.store.postgres.presence import PRESENCE_SECONDS

_GRANTS = f"""
GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE};
REVOKE INSERT, UPDATE, DELETE ON tenant, migration, setting FROM {ROLE};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {ROLE};
"""
DEFAULT_ENGINE = "pgqueuer"
_MAY_CREATE = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
_EXISTS = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"
_IS_MEMBER = "SELECT pg_has_role($1, 'MEMBER')"
_SEPARATE = """
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS tenant text COLLATE "C" NOT NULL DEFAULT 'default';
ALTER TABLE {table} ALTER COLUMN tenant SET DEFAULT current_setting('{setting}');
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON {table};
CREATE POLICY own ON {table} USING (tenant = current_setting('{setting}'));
"""


async def grant_role(connection: asyncpg.Connection) -> None:
    """Create the role if this user may, and give it its rights. Without it, there is only the default tenant."""
    if not await connection.fetchval(_EXISTS, ROLE):
        if not await connection.fetchval(_MAY_CREATE):
            return
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE ROLE {ROLE} NOLOGIN")
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            pass  # of another database of this server, in this moment
    if not await connection.fetchval(_IS_MEMBER, ROLE):
        if not await connection.fetchval(_MAY_CREATE):
            return
        await connection.execute(f"GRANT {ROLE} TO CURRENT_USER")
    await connection.execute(_GRANTS)


async def separate_tenants(url: str, tables: Sequence[str]) -> None:
    """Separate the tenants in tables of an engine, which come from its own library. Raises StoreUnavailable."""

    async def work(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            for table in tables:
                await connection.execute(_SEPARATE.format(table=table, setting=TENANT_SETTING))
            await grant_role(connection)

    await _administer(url, work)


async def add_tenant(url: str, name: str) -> None:
    """Create a tenant. Raises InvalidInput if it exists, StoreUnavailable."""
    check_tenant(name)

    async def work(connection: asyncpg.Connection) -> None:
        if not await connection.fetchval(_EXISTS, ROLE) or not await connection.fetchval(_IS_MEMBER, ROLE):
            raise StoreUnavailable(
                f"the store {shown(url)!r} cannot separate tenants: its user has no role {ROLE!r}",
                hint=f"let a superuser run: CREATE ROLE {ROLE}; GRANT {ROLE} TO your_user; then {command_for('migrate', url)}",
            )
        async with connection.transaction():
            try:
                await connection.execute("INSERT INTO tenant (name) VALUES ($1)", name)
            except asyncpg.UniqueViolationError:
                raise InvalidInput(f"there is already a tenant {name!r}") from None
            await connection.execute("SELECT set_config($1, $2, true)", TENANT_SETTING, name)
            await connection.execute("INSERT INTO place_offset (value) VALUES (0)")

    await _administer(url, work)


async def remove_tenant(url: str, name: str) -> None:
    """Remove a tenant with everything it has. It can be repeated after an interruption.

    Raises InvalidInput if it does not exist, is the default one, or a process has it open; StoreUnavailable.
    """
    if name == DEFAULT_TENANT:
        raise InvalidInput(
            f"the tenant {name!r} cannot be removed", hint="drop the database to remove everything"
        )

    async def work(connection: asyncpg.Connection) -> None:
        await connection.execute("SELECT set_config($1, $2, false)", TENANT_SETTING, name)
        tables = [row["name"] for row in await connection.fetch(SQL["tenant_tables"])]
        # First the name: no process can open the tenant from here on, and a repetition finds what is left.
        async with connection.transaction():
            is_there = await connection.fetchval("DELETE FROM tenant WHERE name = $1 RETURNING true", name)
            if not is_there and not await _has_rows(connection, tables, name):
                raise InvalidInput(f"there is no tenant {name!r}", hint=command_for("tenants", url))
            alive = await connection.fetch(SQL["workers_of"], name, timedelta(seconds=PRESENCE_SECONDS))
            if alive:
                who = ", ".join(f"{row['pid']} on {row['host']}" for row in alive)
                raise InvalidInput(
                    f"the tenant {name!r} is in use by {who}", hint="stop these processes first"
                )
        place = (await read_settings(connection)).get("blobs")
        if place:
            objects = BlobObjects(place, tenant=name)
            async for each in objects.all():
                await objects.remove(each.digest)
        async with connection.transaction():
            for table in tables:
                await connection.execute(f"DELETE FROM {table} WHERE tenant = $1", name)  # noqa: S608 - a table of ours

    await _administer(split_tenant(url)[0], work)


async def _has_rows(connection: asyncpg.Connection, tables: Sequence[str], name: str) -> bool:
    for table in tables:
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table} WHERE tenant = $1)", name):  # noqa: S608
            return True
    return False


async def list_tenants(url: str) -> tuple[str, ...]:
    """The names of all tenants. Raises StoreUnavailable."""

    async def work(connection: asyncpg.Connection) -> tuple[str, ...]:
        return tuple(row["name"] for row in await connection.fetch("SELECT name FROM tenant ORDER BY name"))

    return await _administer(url, work)


async def put_blobs_setting(url: str, blobs: str) -> None:
    """Say where large blobs are, for all machines. Raises InvalidInput if objects are somewhere else, StoreUnavailable."""
    BlobObjects(blobs, tenant=DEFAULT_TENANT)  # raises if it makes no sense
    if blobs.startswith("memory:"):
        raise InvalidInput(
            "objects in memory are lost with the process", hint="use s3://bucket or file:///folder"
        )

    async def work(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            before = (await read_settings(connection)).get("blobs")
            for row in await connection.fetch("SELECT name FROM tenant"):
                await connection.execute("SELECT set_config($1, $2, true)", TENANT_SETTING, row["name"])
                if (
                    before not in (None, blobs)
                    and (await connection.fetchrow(SQL["object_totals"]))["objects"]
                ):
                    raise InvalidInput(
                        f"large blobs are in {before!r}",
                        hint="copy them to the new place, and change the setting in SQL",
                    )
            await connection.execute(SQL["put_setting"], "blobs", blobs)

    await _administer(url, work)


async def read_settings(connection: asyncpg.Connection) -> dict[str, str]:
    """What all machines agree on: `blobs` and `engine`."""
    return {row["name"]: row["value"] for row in await connection.fetch(SQL["settings"])}


async def engine_of(url: str) -> str:
    """The engine that carries the jobs of a store. Raises StoreUnavailable."""
    return (await _administer(url, read_settings)).get("engine", DEFAULT_ENGINE)


async def put_engine_setting(url: str, engine: str) -> None:
    """Say which engine carries the jobs, for all machines. Raises StoreUnavailable."""
    await _administer(url, lambda connection: connection.execute(SQL["put_setting"], "engine", engine))


async def require_tenant(connection: asyncpg.Connection, url: str, name: str) -> None:
    """Raise StoreUnavailable if the tenant of a connection does not exist."""
    if await connection.fetchval("SELECT name FROM tenant WHERE name = $1", name) is None:
        base, _ = split_tenant(url)
        raise StoreUnavailable(
            f"the store {shown(base)!r} has no tenant {name!r}",
            hint=f"{command_for('tenants', base)} --add {name}",
        )


async def _administer(url: str, work: Work[Result]) -> Result:
    try:
        connection = await connect(url, is_admin=True)
    except (*LOST, asyncpg.PostgresError) as problem:
        raise explain(problem, url) from problem
    try:
        return await work(connection)
    except (*LOST, asyncpg.PostgresError) as problem:
        raise explain(problem, url) from problem
    finally:
        await close_quickly(connection)
