"""Holding a server: from the start of its program to its end, in a task of its own.

The protocol library wants its context left by the task that entered it, and calls come from any task.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core import Clock
from holdfast.core.errors import HoldfastError
from holdfast.mcp.contract import Follower
from holdfast.mcp.launch import launch
from holdfast.mcp.specs import ServerSpec
from holdfast.mcp.ward import Ward
from holdfast.mcp.wishes import Wishes

if TYPE_CHECKING:
    from holdfast.mcp.connection import Connection


def _load_protocol() -> "Callable[..., AbstractAsyncContextManager[Connection]]":
    from holdfast.mcp.connection import connect

    return connect


class Holding:
    """One run of a server. Begins with its making; ends with the server, or with `close`."""

    def __init__(
        self,
        spec: ServerSpec,
        *,
        workspace: Path,
        environ: Mapping[str, str],
        clock: Clock,
        tell: Follower,
        on_loss: Callable[[str], None],
        wishes: Wishes,
        protocol: str,
    ) -> None:
        """`on_loss` is told why, where the server ends by itself after it answered."""
        self._spec = spec
        self._workspace = workspace
        self._environ = environ
        self._clock = clock
        self._tell = tell
        self._on_loss = on_loss
        self._wishes = wishes
        self._protocol = protocol
        self._ready: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(), name=f"mcp-{spec.name}")

    async def ready(self) -> "Connection":
        """The server, greeted. Raises HoldfastError where it does not come up."""
        return await asyncio.shield(self._ready)

    async def ended(self) -> None:
        """Wait until a server that was lost is gone and its loss told, which takes a few seconds at most."""
        await asyncio.wait({self._task})

    async def close(self) -> None:
        """End the server. Idempotent."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _hold(self) -> None:
        ward: Ward | None = None
        try:
            ward = await launch(self._spec, workspace=self._workspace, environ=self._environ)
            # While the server loads, and in a thread: it takes a second or two, and other sessions go on meanwhile.
            connect = await asyncio.to_thread(_load_protocol)
            async with connect(
                self._spec,
                ward=ward,
                workspace=self._workspace,
                environ=self._environ,
                clock=self._clock,
                tell=self._tell,
                wishes=self._wishes,
                protocol=self._protocol,
            ) as connection:
                self._ready.set_result(connection)
                await connection.lost()
            self._on_loss(str(connection.ending()))
        except HoldfastError as error:
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            if not self._ready.done():
                self._ready.cancel()
            if ward is not None:
                await ward.stop(grace_seconds=0)
