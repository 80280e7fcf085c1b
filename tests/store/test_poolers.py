"""A pooler between a process and PostgreSQL breaks sessions later, so the first connection refuses it, in words."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.support.postgres import SOCKET_NAME, Databases, open_server, through_socket

from holdfast.core import SystemClock
from holdfast.core.errors import StoreUnavailable
from holdfast.services.doctor.shared_store import check_store
from holdfast.store import Home, list_tenants, open_work_store, store_status

REFUSAL = b"SERROR\0C08P01\0Munsupported startup parameter: search_path\0\0"


@asynccontextmanager
async def pooler(url: str, *, ignores_settings: bool) -> AsyncIterator[str]:
    """What PgBouncer does with the settings of a connection: it refuses them, or drops them where it was told to."""
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        size = int.from_bytes(await reader.readexactly(4), "big")
        start = await reader.readexactly(size - 4)
        if not ignores_settings:
            writer.write(b"E" + (len(REFUSAL) + 4).to_bytes(4, "big") + REFUSAL)
            writer.close()
            return
        words = start[4:].split(b"\0")
        given = dict(zip(words[::2], words[1::2], strict=False))
        kept = b"".join(b"%s\0%s\0" % (name, given[name]) for name in (b"user", b"database"))
        there, back = await open_server(url)
        back.write((len(kept) + 9).to_bytes(4, "big") + start[:4] + kept + b"\0")
        await asyncio.gather(pump(reader, back), pump(there, writer))
        await back.wait_closed()

    with tempfile.TemporaryDirectory(prefix="holdfast-pooler-") as folder:
        server = await asyncio.start_unix_server(accept, Path(folder) / SOCKET_NAME)
        yield through_socket(url, folder)
        server.close()
        await asyncio.gather(*connections)  # the clients have left


async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):  # the client left without a word
        while content := await source.read(65536):
            target.write(content)
    target.close()


@pytest.mark.parametrize("ignores_settings", [False, True])
async def test_a_pooler_in_front_of_the_database_is_refused_with_the_way_out(
    postgres_databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignores_settings: bool
) -> None:
    address = await postgres_databases.take()
    try:
        async with pooler(address, ignores_settings=ignores_settings) as url:
            for look in (
                lambda: open_work_store(Home(tmp_path), url, clock=SystemClock()),
                lambda: store_status(url),
                lambda: list_tenants(url),
            ):
                with pytest.raises(StoreUnavailable, match="PgBouncer") as refused:
                    await look()
                assert "PostgreSQL server itself" in (refused.value.hint or "")
            monkeypatch.setenv("HOLDFAST_STORE", url)
            with pytest.raises(StoreUnavailable, match="PgBouncer"):
                await check_store(Home(tmp_path))
    finally:
        postgres_databases.give_back(address)
