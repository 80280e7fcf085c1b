"""A proxy in front of PostgreSQL that can swallow everything, as a network does that drops packets: no answer, no error."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_NAME = ".s.PGSQL.5432"


class BlackHole:
    """Listens on a socket of its own, and passes bytes on until it is told not to."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        (self._target,) = parse_qs(self._parts.query)["host"]
        self._passes = asyncio.Event()
        self._passes.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "BlackHole":
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-hole-")
        self._server = await asyncio.start_unix_server(self._accept, Path(self._folder.name) / _NAME)
        self.url = self._parts._replace(query=f"host={self._folder.name}").geturl()
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
            there, back = await asyncio.open_unix_connection(f"{self._target}/{_NAME}")
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
