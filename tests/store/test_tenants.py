"""Tenants of one database see nothing of each other, however one tries: every table, every method of the store, every job."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.store.sample_events import opened, said, turn
from tests.support.postgres import Databases, of_tenant, of_user

from holdfast.core import SessionId, SystemClock, digest_bytes
from holdfast.core.errors import (
    HoldfastError,
    InvalidInput,
    JournalDamaged,
    SessionNotFound,
    StoreUnavailable,
)
from holdfast.store import (
    Home,
    Journal,
    SessionShare,
    WorkStore,
    add_tenant,
    check_api_key,
    connect_database,
    create_api_key,
    list_tenants,
    open_work_store,
    put_blobs_setting,
    remove_tenant,
)
from holdfast.worker import install_dispatch, open_dispatch, post_message

ID, NAME = SessionId("the-secret-session"), "secret-name"
SECRET = b"a secret content"
SHARED_BY_ALL = {
    "migration",
    "tenant",
    "setting",
    "pgqueuer_statistics",
    "pgqueuer_schedules",
    "procrastinate_periodic_defers",
}
"""Tables without rows of sessions: the schema, the names of tenants, which each sees its own of, and numbers of the queue."""


@dataclass(frozen=True)
class Tenants:
    """A tenant with a session, and another one that looks for it."""

    url: str
    theirs: WorkStore
    ours: WorkStore
    key: str
    """Of theirs."""
    journal: Journal
    """Of theirs, released."""
    archive: Path

    @property
    def our_url(self) -> str:
        return of_tenant(self.url, "ours")


@pytest.fixture
async def tenants(postgres_databases: Databases, tmp_path: Path) -> AsyncIterator[Tenants]:
    url = await postgres_databases.take()
    async with AsyncExitStack() as stack:
        stack.callback(postgres_databases.give_back, url)
        await install_dispatch(url)
        await add_tenant(url, "ours")
        clock = SystemClock()
        theirs = await open_work_store(Home(tmp_path / "theirs"), url, clock=clock)
        stack.push_async_callback(theirs.close)
        ours = await open_work_store(Home(tmp_path / "ours"), of_tenant(url, "ours"), clock=clock)
        stack.push_async_callback(ours.close)
        journal, key = await fill(theirs, url)
        archive = tmp_path / "theirs.zip"
        await theirs.export_session(ID, archive, now_ms=0)
        await journal.release()
        yield Tenants(url, theirs, ours, key, journal, archive)


async def fill(store: WorkStore, url: str) -> tuple[Journal, str]:
    """Give a tenant something in every table. Returns its session and an API key."""
    await store.put_blob(SECRET)
    journal = await store.create(opened(name=NAME), session=ID)
    await journal.append(*turn(1), said(2, "xylophone"))
    await store.search("xylophone")
    await store.change_shares(ID, lambda _: {ID: SessionShare()})
    await store.put_document("grants", b"[]", version=0)
    await post_message(store, open_dispatch(url), ID, "hello", id="theirs")
    _, key = await create_api_key(store, "alice", "operate")
    return journal, key


async def rows_by_table(url: str) -> dict[str, dict[str, int]]:
    """How many rows each tenant has, by table."""
    connection = await connect_database(url, is_admin=True)
    tables = await connection.fetch(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'holdfast' AND column_name = 'tenant'"
    )
    found: dict[str, dict[str, int]] = {}
    for (table,) in tables:
        counted = await connection.fetch(f'SELECT tenant, count(*) FROM "{table}" GROUP BY tenant')
        found[table] = {row[0]: row[1] for row in counted}
    await connection.close()
    return found


async def test_a_removed_tenant_leaves_nothing_and_the_others_keep_everything(
    tenants: Tenants, tmp_path: Path
) -> None:
    places = tmp_path / "objects"
    await put_blobs_setting(tenants.url, f"file://{places}")
    with pytest.raises(InvalidInput, match="in use by"):
        await remove_tenant(tenants.url, "ours")
    url = of_tenant(tenants.url, "gone")
    await add_tenant(tenants.url, "gone")
    store = await open_work_store(Home(tmp_path / "gone"), url, clock=SystemClock())
    journal, _ = await fill(store, url)
    await store.put_blob(bytes(2 * 2**20))
    await store.usage()
    await journal.release()
    await store.close()
    before = await rows_by_table(tenants.url)
    assert [path for path in places.rglob("*") if path.is_file()]
    empty = {
        table
        for table, counts in before.items()
        if not counts.get("gone")
        and not table.startswith("procrastinate")  # of an earlier test of this database
    }
    assert empty <= {"tombstone", "worker", "usage_asked", "pgqueuer_log"}, "the test has nothing there"
    await remove_tenant(tenants.url, "gone")
    after = await rows_by_table(tenants.url)
    assert after == {
        table: {tenant: count for tenant, count in counts.items() if tenant != "gone"}
        for table, counts in before.items()
    }
    assert not [path for path in places.rglob("*") if path.is_file()]
    assert await list_tenants(tenants.url) == ("default", "ours")
    for name in ("gone", "default", "never"):
        with pytest.raises(InvalidInput):
            await remove_tenant(tenants.url, name)
    with pytest.raises(StoreUnavailable, match="has no tenant"):
        await open_work_store(Home(tmp_path / "gone"), url, clock=SystemClock())


def nothing_found(tenants: Tenants, folder: Path) -> dict[str, Callable[[], Awaitable[object]]]:
    """Every method of a store, called with what belongs to another tenant. None returns anything of theirs."""
    store, key = tenants.ours, tenants.key
    digest = digest_bytes(SECRET)

    async def ingest() -> object:
        async with store.ingest():
            return None

    async def within(_: object) -> None:
        return None

    async def post_jobs(_: object, sessions: object) -> None:
        return None

    async def waits() -> object:
        with store.watch() as watch:
            await watch.changed()
        return None

    async def waits_for_requests() -> object:
        with store.watch_requests() as watch:
            await watch.changed()
        return None

    return {
        "open": lambda: store.open(ID),
        "retake": lambda: store.retake(tenants.journal),
        "fork": lambda: store.fork(ID, at=1, opened=opened()),
        "read": lambda: store.read(ID),
        "holder": lambda: store.holder(ID),
        "sessions": lambda: store.sessions(),
        "session_page": lambda: _listed(store),
        "waiting": lambda: store.waiting(),
        "usage": lambda: store.usage(),
        "session_usage": lambda: store.session_usage(session=ID),
        "last_row": lambda: store.last_row(),
        "events_after": lambda: store.events_after(0),
        "watch": waits,
        "summary": lambda: store.summary(ID),
        "find": lambda: store.find(ID[:5]),
        "shares": lambda: store.shares(ID),
        "change_shares": lambda: store.change_shares(ID, lambda _: {ID: SessionShare()}),
        "search": lambda: store.search("xylophone"),
        "delete": lambda: store.delete(ID),
        "remove": lambda: store.remove(ID, reason="deleted"),
        "sweep": lambda: store.sweep(frozenset({digest})),
        "verify": lambda: store.verify(ID),
        "verify_all": lambda: store.verify_all(),
        "rebuild_index": lambda: store.rebuild_index(),
        "export_session": lambda: store.export_session(ID, folder / "ours.zip", now_ms=0),
        "blob": lambda: store.blob(digest),
        "open_blobs": lambda: store.open_blobs([digest]),
        "ingest": ingest,
        "post_request": lambda: store.post_request(ID, b"{}", post_jobs=post_jobs),
        "in_transaction": lambda: store.in_transaction(within),
        "requests": lambda: store.requests(ID),
        "requested": lambda: store.requested([ID]),
        "watch_requests": waits_for_requests,
        "remove_request": lambda: store.remove_request("theirs"),
        "document": lambda: _content(store),
        "api_key": lambda: check_api_key(store, key),
        "api_keys": lambda: store.api_keys(),
        "remove_api_key": lambda: store.remove_api_key(key.split("_")[1]),
    }


OWN = {"create", "put_blob", "import_session", "announce", "put_document", "keep_api_key", "close"}
"""Methods that only add something of one's own: the next test calls them with the ids of the other tenant."""


async def _listed(store: WorkStore) -> object:
    page = await store.session_page()
    return (*page.sessions, *(await store.session_page(activity="waiting")).sessions)


async def _content(store: WorkStore) -> object:
    return (await store.document("grants")).content


async def test_no_method_of_the_store_reaches_another_tenant(tenants: Tenants, tmp_path: Path) -> None:
    before = await _everything_of(tenants)
    attempts = nothing_found(tenants, tmp_path)
    methods = {name for name, _ in inspect.getmembers(WorkStore, inspect.isfunction) if name[0] != "_"}
    assert methods == set(attempts) | OWN, "a new method of the store is tried here too"
    for name, attempt in attempts.items():
        try:
            found = await attempt()
        except (SessionNotFound, JournalDamaged):
            continue
        assert not found, f"{name} returned {found!r}"
    for reference in (ID, NAME, ID[:4], NAME[:4], "session"):
        with pytest.raises(SessionNotFound):
            await tenants.ours.find(reference)
    assert await _everything_of(tenants) == before, "nothing of theirs was changed"


async def test_two_tenants_can_have_the_same_ids_names_and_contents(tenants: Tenants, tmp_path: Path) -> None:
    before = await _everything_of(tenants)
    ours = tenants.ours
    journal = await ours.create(opened(name=NAME), session=ID)
    assert journal.fence == 1
    await journal.append(said(1, "of ours"))
    assert [one.id for one in await ours.sessions()] == [ID]
    digest = await ours.put_blob(SECRET)
    assert await ours.put_document("grants", b"ours", version=0)
    await post_message(ours, open_dispatch(tenants.our_url), ID, "hello", id="theirs")
    assert len(await ours.requests(ID)) == 1
    await journal.release()
    await ours.delete(ID)
    await ours.sweep(frozenset({digest}))
    assert await ours.import_session(tenants.archive, now_ms=0) == ID
    assert await _everything_of(tenants) == before
    assert await tenants.theirs.blob(digest) == SECRET


async def _everything_of(tenants: Tenants) -> dict[str, list[Any]]:
    """Every row of the other tenant, as the owner of the database sees them."""
    connection = await connect_database(tenants.url, is_admin=True)
    try:
        found = {}
        for table in await _tables(connection):
            where = "" if table in SHARED_BY_ALL else "WHERE tenant = 'default'"
            if table not in ("worker", *SHARED_BY_ALL):
                found[table] = sorted(map(str, await connection.fetch(f'SELECT * FROM "{table}" {where}')))
        return found
    finally:
        await connection.close()


async def _tables(connection: Any) -> list[str]:
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'")
    return sorted(row["tablename"] for row in rows)


async def test_every_table_is_separated_by_the_database_itself(tenants: Tenants) -> None:
    connection = await connect_database(tenants.our_url)
    try:
        assert await connection.fetchval("SELECT current_user") == "holdfast_tenant"
        rows = await connection.fetch(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r'"
        )
        for name, is_separated, is_forced in rows:
            if name in SHARED_BY_ALL:
                continue
            assert is_separated, name
            assert is_forced or name == "passage", name
            await _try_to_cross(connection, name)
        assert await connection.fetch("SELECT name FROM tenant") == [("ours",)]
    finally:
        await connection.close()


async def _try_to_cross(connection: Any, table: str) -> None:
    import asyncpg

    # Rows of ours are there too: our own presence, for one.
    assert not await connection.fetchval(f"SELECT count(*) FROM \"{table}\" WHERE tenant <> 'ours'"), table
    changed = await connection.execute(f"UPDATE \"{table}\" SET tenant = tenant WHERE tenant <> 'ours'")
    assert changed == "UPDATE 0", table
    assert await connection.execute(f"DELETE FROM \"{table}\" WHERE tenant <> 'ours'") == "DELETE 0", table
    try:
        given_away = await connection.execute(f"UPDATE \"{table}\" SET tenant = 'default'")
    except asyncpg.InsufficientPrivilegeError:
        given_away = "UPDATE 0"
    assert given_away == "UPDATE 0", table
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute(f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY')
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute(f'TRUNCATE "{table}"')


async def test_a_key_of_a_table_begins_with_the_tenant_so_that_no_conflict_tells_anything(
    tenants: Tenants,
) -> None:
    connection = await connect_database(tenants.url, is_admin=True)
    try:
        rows = await connection.fetch(
            "SELECT c.relname AS name, a.attname AS first FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
            " WHERE i.indisunique AND c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r'"
        )
    finally:
        await connection.close()
    ours = [
        row
        for row in rows
        if row["name"] not in SHARED_BY_ALL and not row["name"].startswith(("pgqueuer", "procrastinate"))
    ]
    assert ours
    assert {row["first"] for row in ours} == {"tenant"}


async def test_a_connection_that_names_no_tenant_reads_nothing(tenants: Tenants) -> None:
    import asyncpg

    # As behind a pool that gives each transaction another connection, or after a mistake of ours.
    connection = await asyncpg.connect(tenants.url, server_settings={"search_path": "holdfast"})
    try:
        await connection.execute("SET ROLE holdfast_tenant")
        for table in sorted(set(await _tables(connection)) - SHARED_BY_ALL):
            with pytest.raises(asyncpg.PostgresError, match=r"holdfast\.tenant"):
                await connection.fetch(f'SELECT * FROM "{table}"')
        with pytest.raises(asyncpg.PostgresError, match=r"holdfast\.tenant"):
            await connection.fetch("SELECT * FROM find_passages('x', 1)")
    finally:
        await connection.close()


async def test_jobs_of_a_tenant_reach_only_its_workers(tenants: Tenants) -> None:
    theirs, ours = open_dispatch(tenants.url), open_dispatch(tenants.our_url)
    assert (await theirs.backlog(), await ours.backlog()) == (1, 0)
    assert await ours.queues() == []
    await ours.cancel(ID)
    assert await ours.retry_failed() == 0
    done: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        done.append(session)

    stop = asyncio.Event()
    journal = await tenants.ours.create(opened(), session=SessionId("own"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ours.run(handle, places=2, stop=stop))
        await post_message(tenants.ours, ours, journal.session, "hello")
        async with asyncio.timeout(60):
            while not done:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        stop.set()
    assert done == ["own"]
    assert await theirs.backlog() == 1


async def test_a_tenant_must_exist_and_its_name_must_be_one(tenants: Tenants, tmp_path: Path) -> None:
    assert await list_tenants(tenants.url) == ("default", "ours")
    with pytest.raises(StoreUnavailable, match="no tenant 'nobody'") as refusal:
        await open_work_store(Home(tmp_path / "x"), of_tenant(tenants.url, "nobody"), clock=SystemClock())
    assert "--add nobody" in str(refusal.value.hint)
    for name in ("", "Big", "a b", "a'b", "x" * 40, "-a"):
        with pytest.raises(InvalidInput):
            await add_tenant(tenants.url, name)
    with pytest.raises(InvalidInput, match="already"):
        await add_tenant(tenants.url, "ours")


async def test_a_data_directory_belongs_to_one_tenant(tenants: Tenants, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="belongs to the tenant 'default'"):
        await open_work_store(Home(tmp_path / "theirs"), tenants.our_url, clock=SystemClock())


async def test_a_key_counts_for_its_tenant_until_it_is_revoked(tenants: Tenants) -> None:
    found = await check_api_key(tenants.theirs, tenants.key)
    assert found is not None
    assert (found.principal, found.right) == ("alice", "operate")
    for wrong in ("", "hf_", tenants.key[:-1], tenants.key + "x", f"hf_{found.id}_", "hf_x_y", "hf_\u00e9_y"):
        assert await check_api_key(tenants.theirs, wrong) is None
    connection = await connect_database(tenants.url)
    rows = await connection.fetch("SELECT * FROM api_key")
    await connection.close()
    assert tenants.key.split("_", 2)[2] not in str(rows), "only a hash is kept"
    assert await tenants.theirs.remove_api_key(found.id)
    assert not await tenants.theirs.remove_api_key(found.id)
    assert await check_api_key(tenants.theirs, tenants.key) is None
    for name in ("", " ", "x" * 81, "a\nb"):
        with pytest.raises(HoldfastError):
            await create_api_key(tenants.theirs, name, "look")


async def test_an_owner_without_the_right_to_create_roles_has_one_tenant(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    import asyncpg

    from holdfast.store.postgres.migrations import migrate

    url = await postgres_databases.take_blank()
    admin = await asyncpg.connect(url)
    try:
        await admin.execute("DROP ROLE IF EXISTS holdfast_plain; CREATE ROLE holdfast_plain LOGIN")
        await admin.execute(
            f"GRANT CREATE ON DATABASE {await admin.fetchval('SELECT current_database()')} TO holdfast_plain"
        )
        plain = of_user(url, "holdfast_plain")
        await migrate(plain)
        store = await open_work_store(Home(tmp_path), plain, clock=SystemClock())
        await store.create(opened(), session=ID)
        await store.close()
        other = await connect_database(of_tenant(plain, "other"))
        assert await other.fetchval("SELECT current_user") == "holdfast_plain"
        assert not await other.fetchval("SELECT count(*) FROM session"), "an owner is separated as well"
        await other.close()
        with pytest.raises(StoreUnavailable, match="cannot separate tenants"):
            await add_tenant(plain, "other")
    finally:
        await admin.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS holdfast CASCADE")
        await admin.execute("DROP OWNED BY holdfast_plain; DROP ROLE holdfast_plain")
        await admin.close()
        await migrate(url)
        postgres_databases.give_back(url)
