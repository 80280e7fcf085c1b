"""What an operator sees of the store: its schema, its size, and the processes that have it open."""

from datetime import timedelta

import asyncpg

from holdfast.store.contract import StoreStatus, WorkerPresence
from holdfast.store.postgres.database import LOST, SQL, close_quickly, connect, explain, split_tenant
from holdfast.store.postgres.migrations import schema_status
from holdfast.store.postgres.presence import PRESENCE_SECONDS
from holdfast.store.postgres.tenants import DEFAULT_ENGINE, list_tenants, read_settings, require_tenant


async def read_status(url: str) -> StoreStatus:
    """Look at the store at an address. Raises StoreUnavailable."""
    try:
        connection = await connect(url)
    except (*LOST, asyncpg.PostgresError) as problem:
        raise explain(problem, url) from problem
    try:
        return await _read(connection, url)
    except (*LOST, asyncpg.PostgresError) as problem:
        raise explain(problem, url) from problem
    finally:
        await close_quickly(connection)


async def _read(connection: asyncpg.Connection, url: str) -> StoreStatus:
    schema = await schema_status(connection)
    server = await connection.fetchval("SHOW server_version")
    if schema.found != schema.needed:
        return StoreStatus(schema_found=schema.found, schema_needed=schema.needed, server=server)
    tenants = len(await list_tenants(url))
    await require_tenant(connection, url, split_tenant(url)[1])
    counts = await connection.fetchrow(SQL["counts"])
    totals = await connection.fetchrow(SQL["object_totals"])
    settings = await read_settings(connection)
    rows = await connection.fetch(SQL["workers"], timedelta(seconds=PRESENCE_SECONDS))
    risks = await _read_risks(connection)
    return StoreStatus(
        schema_found=schema.found,
        schema_needed=schema.needed,
        server=server,
        tenant=split_tenant(url)[1],
        tenants=tenants,
        engine=settings.get("engine", DEFAULT_ENGINE),
        blobs=settings.get("blobs", ""),
        keys=len(await connection.fetch(SQL["api_keys"])),
        **dict(totals),
        workers=tuple(WorkerPresence(**dict(row)) for row in rows),
        risks=risks,
        **dict(counts),
    )


async def _read_risks(connection: asyncpg.Connection) -> tuple[str, ...]:
    """What of the server's settings can lose events that were acknowledged."""
    row = await connection.fetchrow(SQL["durability"])
    risks = []
    if not row["flushes"]:
        risks.append("fsync is off: a power cut of the database server can lose or damage everything")
    if row["standbys"] and not row["waits_for_standby"]:
        risks.append(
            "its standby is asynchronous: a failover loses the last events, although they were acknowledged;"
            " set synchronous_standby_names"
        )
    return tuple(risks)
