"""Large blobs of the store in PostgreSQL as objects: in a folder, in an S3-compatible service, and in memory."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest
from tests.store.sample_events import opened, said
from tests.support.postgres import Databases, of_tenant
from tests.support.s3_standin import S3StandIn, s3_standin

from holdfast.core import SystemClock, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged, StoreUnavailable
from holdfast.core.events import RestorePointMade
from holdfast.store import Home, add_tenant, connect_database, put_blobs_setting
from holdfast.store.postgres.store import PostgresStore

LIMIT = 1000
LARGE, SMALL = b"large " * 500, b"small"


class Place(Protocol):
    """Objects of one kind, as somebody sees them who has access to them."""

    url: str

    def objects(self) -> dict[str, bytes]: ...

    def replace(self, name: str, content: bytes | None) -> None: ...


class Folder:
    """Objects in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"file://{folder}"

    def objects(self) -> dict[str, bytes]:
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self._folder)): path.read_bytes() for path in files}

    def replace(self, name: str, content: bytes | None) -> None:
        path = self._folder / name
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)


class Bucket:
    """Objects of a service."""

    def __init__(self, service: S3StandIn) -> None:
        self.service = service
        self.url = "s3://bucket/some/prefix"

    def objects(self) -> dict[str, bytes]:
        return {key.removeprefix("some/prefix/"): content for key, content in self.service.objects.items()}

    def replace(self, name: str, content: bytes | None) -> None:
        if content is None:
            del self.service.objects[f"some/prefix/{name}"]
        else:
            self.service.objects[f"some/prefix/{name}"] = content


class Stores:
    """Opens stores on one database."""

    def __init__(self, url: str, folder: Path, stack: AsyncExitStack) -> None:
        self.url = url
        self._folder = folder
        self._stack = stack

    async def open(self, *, tenant: str = "default") -> PostgresStore:
        url = self.url if tenant == "default" else of_tenant(self.url, tenant)
        home = Home(self._folder / tenant)
        store = await PostgresStore.start(url, home=home, clock=SystemClock(), large_bytes=LIMIT)
        self._stack.push_async_callback(store.close)
        return store


@pytest.fixture
async def stores(postgres_databases: Databases, tmp_path: Path) -> AsyncIterator[Stores]:
    url = await postgres_databases.take()
    async with AsyncExitStack() as stack:
        stack.callback(postgres_databases.give_back, url)
        yield Stores(url, tmp_path / "homes", stack)


@pytest.fixture(params=["file", "s3"])
async def place(
    request: pytest.FixtureRequest, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    if request.param == "file":
        found: Place = Folder(tmp_path / "objects")
        await put_blobs_setting(stores.url, found.url)
        yield found
        return
    with s3_standin() as service:
        settings = {"ENDPOINT_URL": service.url, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}
        for name, value in {**settings, "REGION": "eu-test-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        found = Bucket(service)
        await put_blobs_setting(stores.url, found.url)
        yield found


def name_of(content: bytes, tenant: str = "default") -> str:
    digest = digest_bytes(content)
    return f"{tenant}/{digest[:2]}/{digest}"


async def test_large_blobs_are_objects_and_small_ones_rows(
    stores: Stores, place: Place, tmp_path: Path
) -> None:
    store = await stores.open()
    assert await store.put_blob(LARGE) == digest_bytes(LARGE)
    assert await store.put_blob(SMALL) == digest_bytes(SMALL)
    file = tmp_path / "file"
    file.write_bytes(LARGE + SMALL)
    opened_file = os.open(file, os.O_RDONLY)
    async with store.ingest() as ingest:
        whole = ingest.take(opened_file, 0, 10**6)
        part = ingest.take(opened_file, len(LARGE), 100)
    os.close(opened_file)
    assert (whole.digest, part.digest) == (digest_bytes(LARGE + SMALL), digest_bytes(SMALL))
    assert place.objects() == {name_of(LARGE): LARGE, name_of(LARGE + SMALL): LARGE + SMALL}
    other = await stores.open()
    assert await other.blob(digest_bytes(LARGE)) == LARGE
    target = os.open(tmp_path / "copy", os.O_RDWR | os.O_CREAT)
    blobs = await other.open_blobs([whole.digest, part.digest])
    assert blobs[whole.digest].copy_to(target) == len(LARGE + SMALL)
    os.close(target)
    assert (tmp_path / "copy").read_bytes() == LARGE + SMALL


async def copied(store: PostgresStore, digest: str, path: Path) -> None:
    target = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        (await store.open_blobs([digest]))[digest].copy_to(target)
    finally:
        os.close(target)


async def test_what_is_wrong_with_an_object_is_said_and_verify_names_it(
    stores: Stores, place: Place, tmp_path: Path
) -> None:
    store = await stores.open()
    digest = await store.put_blob(LARGE)
    journal = await store.create(opened())
    await journal.append(said(1, "hello"), RestorePointMade(turn=1, manifest=digest))
    assert (await store.verify(journal.session)).is_intact
    for content, problem in (
        (None, "is missing"),
        (LARGE[:100], "has 100 of 3000"),
        (LARGE[:-1] + b"x", "was changed"),
    ):
        place.replace(name_of(LARGE), content)
        found = await store.verify(journal.session)
        assert (len(found.lost), found.problems) == (1, ())
        assert digest in found.lost[0]
        assert problem in found.lost[0]
        with pytest.raises(JournalDamaged, match="object"):
            await store.blob(digest)
        with pytest.raises(JournalDamaged):
            await copied(store, digest, tmp_path / "copy")
        assert not (await store.summary(journal.session)).is_damaged, "its journal is intact"
        place.replace(name_of(LARGE), LARGE)
    assert (await store.verify(journal.session)).is_intact
    place.replace(name_of(LARGE), None)
    assert await store.put_blob(LARGE) == digest, "who has the content brings it back"
    assert await store.blob(digest) == LARGE


async def test_objects_go_with_the_last_session_that_refers_to_them(
    stores: Stores, place: Place, tmp_path: Path
) -> None:
    store = await stores.open()
    inner = await store.put_blob(LARGE)
    manifest = await store.put_blob(LARGE + inner.encode())
    sessions = []
    for _ in range(2):
        journal = await store.create(opened())
        await journal.append(RestorePointMade(turn=1, manifest=manifest))
        await journal.release()
        sessions.append(journal.session)
    archive = tmp_path / "session.zip"
    await store.export_session(sessions[0], archive, now_ms=0)
    await store.delete(sessions[0])
    assert len(place.objects()) == 2, "also the one that only an object mentions"
    await store.delete(sessions[1])
    assert place.objects() == {}
    assert await store.import_session(archive, now_ms=0) == sessions[0]
    assert await store.blob(inner) == LARGE


async def test_an_object_of_a_process_that_died_is_swept_later(
    stores: Stores, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await stores.open()
    digest = await store.put_blob(LARGE)
    journal = await store.create(opened())
    await journal.append(RestorePointMade(turn=1, manifest=digest))
    place.replace(name_of(b"orphan"), b"orphan")
    if isinstance(place, Folder):  # the service says that everything there is old
        assert await store.sweep() == 0, "its row may be about to be written"
        monkeypatch.setattr("holdfast.store.postgres.blob_store.ORPHAN_AGE", timedelta(seconds=-60))
    assert await store.sweep() == 1
    assert list(place.objects()) == [name_of(LARGE)]


async def test_tenants_share_no_objects(stores: Stores, place: Place) -> None:
    await add_tenant(stores.url, "other")
    one, other = await stores.open(), await stores.open(tenant="other")
    digest = await one.put_blob(LARGE)
    with pytest.raises(JournalDamaged, match="missing"):
        await other.blob(digest)
    await other.put_blob(LARGE)
    assert set(place.objects()) == {name_of(LARGE), name_of(LARGE, "other")}
    journal = await other.create(opened())
    await journal.append(RestorePointMade(turn=1, manifest=digest))
    await journal.release()
    await other.delete(journal.session)
    assert set(place.objects()) == {name_of(LARGE)}


async def test_a_place_that_is_away_fails_the_write_and_nothing_refers_to_it(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_standin() as service:
        for name, value in {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", service.url)
        monkeypatch.setenv("AWS_REGION", "eu-test-1")
        await put_blobs_setting(stores.url, "s3://bucket")
        store = await stores.open()
        service.is_down = True
        with pytest.raises(StoreUnavailable, match="object store 's3://bucket'"):
            await store.put_blob(LARGE)
        service.is_down = False
        with pytest.raises(JournalDamaged):
            await store.blob(digest_bytes(LARGE))
        await store.put_blob(LARGE)
        with pytest.raises(InvalidInput, match="large blobs are in"):
            await put_blobs_setting(stores.url, f"file://{tmp_path}/elsewhere")
    for wrong in ("ftp://x", "memory:///", "no url", "s3://key:secret@bucket"):
        with pytest.raises(InvalidInput):
            await put_blobs_setting(stores.url, wrong)


async def test_objects_in_memory_serve_one_process(stores: Stores) -> None:
    connection = await connect_database(stores.url, is_admin=True)
    await connection.execute("INSERT INTO setting VALUES ('blobs', 'memory:///')")
    await connection.close()
    store = await stores.open()
    assert await store.blob(await store.put_blob(LARGE)) == LARGE
