"""The schema, as numbered migrations. A process works with exactly the schema that it knows."""

import re
from importlib import resources

import asyncpg

from holdfast.core import Value
from holdfast.core.errors import StoreUnavailable
from holdfast.store.postgres.database import LOST, SCHEMA, close_quickly, command_for, connect, explain, shown
from holdfast.store.postgres.tenants import grant_role

_LOCK = 7266330


class Migration(Value):
    """One step of the schema."""

    number: int
    title: str
    sql: str


class SchemaStatus(Value):
    """The schema of a database, and what this version of Holdfast needs."""

    found: int
    """0 if there is none."""
    needed: int


def _load() -> tuple[Migration, ...]:
    folder = resources.files(__package__) / "sql" / "migrations"
    found = []
    for file in folder.iterdir():
        if matched := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name):
            title = matched[2].replace("_", " ")
            found.append(Migration(number=int(matched[1]), title=title, sql=file.read_text()))
    return tuple(sorted(found, key=lambda one: one.number))


MIGRATIONS = _load()
NEWEST = MIGRATIONS[-1].number


async def schema_status(connection: asyncpg.Connection) -> SchemaStatus:
    """Look at the schema of a database."""
    exists = await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{SCHEMA}.migration")
    number = await connection.fetchval("SELECT max(number) FROM migration") if exists else 0
    return SchemaStatus(found=number or 0, needed=NEWEST)


def require_current(status: SchemaStatus, url: str) -> None:
    """Raise StoreUnavailable, with the way out, unless the schema is the one that this version knows."""
    if status.found == status.needed:
        return
    where = shown(url)
    if status.found > status.needed:
        raise StoreUnavailable(
            f"the store {where!r} has schema {status.found}, and this version of Holdfast knows {status.needed}",
            hint="upgrade Holdfast on this machine",
        )
    if status.found == 0:
        raise StoreUnavailable(f"the store {where!r} has no Holdfast schema", hint=command_for("init", url))
    raise StoreUnavailable(
        f"the store {where!r} has schema {status.found}, and this version of Holdfast needs {status.needed}",
        hint=command_for("migrate", url),
    )


async def migrate(url: str) -> tuple[Migration, ...]:
    """Bring a database to the newest schema, and return the steps that were missing. Raises StoreUnavailable."""
    try:
        connection = await connect(url, command_seconds=3600, is_admin=True)
    except (*LOST, asyncpg.PostgresError) as problem:
        raise explain(problem, url) from problem
    try:
        async with connection.transaction():
            # Two operators at once: the second finds nothing left to do.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            missing = await _apply(connection, url)
            await grant_role(connection)
            return missing
    except (*LOST, asyncpg.PostgresError) as problem:
        raise explain(problem, url) from problem
    finally:
        await close_quickly(connection)


async def _apply(connection: asyncpg.Connection, url: str) -> tuple[Migration, ...]:
    status = await schema_status(connection)
    if status.found > status.needed:
        require_current(status, url)
    missing = tuple(one for one in MIGRATIONS if one.number > status.found)
    if missing and status.found == 0:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await connection.execute(
            "CREATE TABLE migration (number integer PRIMARY KEY, title text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
        )
    for one in missing:
        await connection.execute(one.sql)
        await connection.execute(
            "INSERT INTO migration (number, title) VALUES ($1, $2)", one.number, one.title
        )
    return missing
