"""A proxy in front of PostgreSQL that can swallow everything, as a network does that drops packets: no answer, no error."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.support.postgres import SOCKET_NAME, open_server, through_socket


class BlackHole:
    """Listens on a socket of its own, and passes bytes on until it is told not to."""

    def __init__(self, url: str) -> None:
        self._server_url = url
        self._passes = asyncio.Event()
        self._passes.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "BlackHole":
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-hole-")
        self._server = await asyncio.start_unix_server(self._accept, Path(self._folder.name) / SOCKET_NAME)
        self.url = through_socket(self._server_url, self._folder.name)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._folder.cleanup()

    def swallow(self) -> None:
        """From now on nothing arrives, in either direction."""
        self._passes.clear()

    def let_through(self) -> None:
        """What was on its way arrives."""
        self._passes.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._passes.wait()
            there, back = await open_server(self._server_url)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(reader, back))
                tasks.create_task(self._pump(there, writer))
        except OSError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while content := await source.read(65536):
                await self._passes.wait()
                target.write(content)
                await target.drain()
        target.close()
