"""Holding a server: from the start of its program to its end, in a task of its own.

The protocol library wants its context left by the task that entered it, and calls come from any task.

Launching a server's program, without the protocol library: the two load at the same time, which halves the wait.

Backoff: how long a server that fails is left alone.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core import Clock
from holdfast.core.errors import HoldfastError, ToolFailed
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.config.environment import arguments_for, environment_for
from holdfast.mcp.config.sandbox import confined
from holdfast.mcp.config.servers import ServerSpec
from holdfast.mcp.contract import Listener
from holdfast.process.supervised import SupervisedProcess
from holdfast.store import Home

if TYPE_CHECKING:
    from holdfast.mcp.client.connection import Connection


async def launch(
    spec: ServerSpec, *, workspace: Path, environ: Mapping[str, str]
) -> SupervisedProcess | None:
    """The server's program, started; None for one that is reached by an address. Raises ToolFailed and InvalidConfig."""
    if spec.url:
        return None
    command = _command(spec, workspace, environ)
    environment = environment_for(spec, environ)
    try:
        return await SupervisedProcess.start(command, folder=workspace, environment=environment)
    except (OSError, ValueError) as error:
        raise ToolFailed(f"{spec.command}: cannot be started: {error}") from error


def _command(spec: ServerSpec, workspace: Path, environ: Mapping[str, str]) -> list[str]:
    command = [spec.command, *arguments_for(spec, environ)]
    if spec.sandbox is None:
        return command
    # Our own home holds what every session ever said; a confined server sees of it the workspace at most.
    hidden = (Home.default().root,)
    return confined(spec.sandbox, command, workspace=workspace, hidden=hidden, environ=environ)


def _load_protocol() -> "Callable[..., AbstractAsyncContextManager[Connection]]":
    from holdfast.mcp.client.connection import connect

    return connect


class ServerTask:
    """One run of a server. Begins with its making; ends with the server, or with `close`."""

    def __init__(
        self,
        spec: ServerSpec,
        *,
        workspace: Path,
        environ: Mapping[str, str],
        clock: Clock,
        tell: Listener,
        on_loss: Callable[[str], None],
        wishes: Subscriptions,
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
        ward: SupervisedProcess | None = None
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


FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


class Backoff:
    """After the first failure none: one crash is an accident. From the second on it doubles, for then it is a habit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._not_before = 0.0
        self.failures = 0

    @property
    def seconds_left(self) -> float:
        """How long it is to be left alone still; 0 or less when it may be tried."""
        return self._not_before - self._clock.monotonic()

    def failed(self) -> None:
        """It failed once more."""
        doubled = FIRST_SECONDS * 2 ** min(self.failures - 1, 10)
        self._not_before = self._clock.monotonic() + (min(LONGEST_SECONDS, doubled) if self.failures else 0.0)
        self.failures += 1

    def succeeded(self) -> None:
        """It answered: what was before is forgotten."""
        self.failures = 0
