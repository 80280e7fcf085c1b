"""The task that runs one server, from the start of its program to its end, and the backoff after failures.

The MCP library requires that the task that enters its context also leaves it, while calls come from any task. The
program and the library start at the same time, which halves the wait.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core import Clock
from holdfast.core.errors import HoldfastError, ToolFailed
from holdfast.mcp.client.roots import Roots
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.config.environment import arguments_for, environment_for
from holdfast.mcp.config.sandbox import confined_command
from holdfast.mcp.config.servers import ServerSpec
from holdfast.mcp.contract import Listener
from holdfast.process.supervised import SupervisedProcess
from holdfast.store import Home

if TYPE_CHECKING:
    from holdfast.mcp.client.connection import ServerConnection

FIRST_SECONDS = 1.0
MAX_SECONDS = 60.0


class Backoff:
    """No delay after the first failure, which may be an accident. From the second on, the delay doubles."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._not_before = 0.0
        self.failures = 0

    @property
    def seconds_left(self) -> float:
        """The time until the next attempt; 0 or less if it may start."""
        return self._not_before - self._clock.monotonic()

    def record_failure(self) -> None:
        """Count a failure and set the delay."""
        doubled = FIRST_SECONDS * 2 ** min(self.failures - 1, 10)
        self._not_before = self._clock.monotonic() + (min(MAX_SECONDS, doubled) if self.failures else 0.0)
        self.failures += 1

    def record_success(self) -> None:
        """Forget earlier failures."""
        self.failures = 0


class ServerTask:
    """One run of a server. Starts when constructed; ends with the server or with `close`."""

    def __init__(
        self,
        spec: ServerSpec,
        *,
        workspace: Path,
        roots: Roots,
        environ: Mapping[str, str],
        clock: Clock,
        listener: Listener,
        on_lost: Callable[[str], None],
        subscriptions: Subscriptions,
        protocol: str,
    ) -> None:
        """`on_lost` is called with the reason if the server ends on its own after it answered."""
        self._spec = spec
        self._workspace = workspace
        self._roots = roots
        self._environ = environ
        self._clock = clock
        self._listener = listener
        self._on_lost = on_lost
        self._subscriptions = subscriptions
        self._protocol = protocol
        self._ready: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"mcp-{spec.name}")

    async def ready(self) -> "ServerConnection":
        """Wait for the connection. Raises HoldfastError if the server does not start."""
        return await asyncio.shield(self._ready)

    async def wait_ended(self) -> None:
        """Wait until a lost server is gone and reported, which takes a few seconds at most."""
        await asyncio.wait({self._task})

    async def close(self) -> None:
        """Stop the server. Idempotent."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        process: SupervisedProcess | None = None
        try:
            process = await start_program(self._spec, workspace=self._workspace, environ=self._environ)
            # In a thread: loading takes a second or two, and other sessions must continue.
            connect = await asyncio.to_thread(_load_library)
            async with connect(
                self._spec,
                process=process,
                roots=self._roots,
                environ=self._environ,
                clock=self._clock,
                listener=self._listener,
                subscriptions=self._subscriptions,
                protocol=self._protocol,
            ) as connection:
                self._ready.set_result(connection)
                await connection.wait_until_lost()
            self._on_lost(str(connection.lost_error()))
        except HoldfastError as error:
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            if not self._ready.done():
                self._ready.cancel()
            if process is not None:
                await process.stop(grace_seconds=0)


async def start_program(
    spec: ServerSpec, *, workspace: Path, environ: Mapping[str, str]
) -> SupervisedProcess | None:
    """Start the server's program; None if the transport has none. Raises ToolFailed and InvalidConfig."""
    if not spec.transport.starts_program:
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
    # Holdfast's data directory has the record of every session; a confined server sees at most the workspace in it.
    hidden = (Home.default().root,)
    return confined_command(spec.sandbox, command, workspace=workspace, hidden=hidden, environ=environ)


def _load_library() -> "Callable[..., AbstractAsyncContextManager[ServerConnection]]":
    from holdfast.mcp.client.connection import connect

    return connect
