"""The toolset of one MCP server: it starts the server on first use, restarts it, and checks its tools against the pins.

It uses a `ServerConnection` and is used by the gate, the only caller of `perform`. The tools of a pinned server are offered
before it runs, so opening a session waits for no server.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core import (
    Call,
    Clock,
    Paths,
    PathTarget,
    Performed,
    SystemClock,
    Target,
    Tool,
    has_invisible,
    outside_paths,
    pluralize,
)
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.mcp.client.accepted_tools import AcceptedTools
from holdfast.mcp.client.resources import EXTRAS
from holdfast.mcp.client.results import ResultFormatter, format_for_code, resolve_arguments, tool_error
from holdfast.mcp.client.roots import Roots, folder_of
from holdfast.mcp.client.server_task import Backoff, ServerTask
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.client.tool_definitions import RefusedTool
from holdfast.mcp.config.environment import refuse_model_keys
from holdfast.mcp.config.servers import ServerSpec
from holdfast.mcp.contract import (
    ListChanged,
    Listener,
    LogLevel,
    Progressed,
    ServerFailed,
    ServerNotification,
    ServerStarted,
)
from holdfast.mcp.trust.argument_roles import Annotations, known_roles
from holdfast.mcp.trust.pins import Pins

if TYPE_CHECKING:
    from holdfast.mcp.client.connection import ServerConnection


ROOT_RETRIES, ROOT_RETRY_SECONDS = 3, 0.1
_NOT_STAGED = "{} acts outside the workspace and cannot be staged"


class McpToolset:
    """One server as a toolset. Close it or use it as a context manager."""

    def __init__(
        self,
        spec: ServerSpec,
        *,
        workspace: Path,
        pins: Pins,
        paths: Paths | None = None,
        annotations: Annotations | None = None,
        environ: Mapping[str, str] | None = None,
        keys: Collection[str] = (),
        clock: Clock | None = None,
        format_result: ResultFormatter = format_for_code,
        has_extras: bool = False,
    ) -> None:
        """`keys` are the variables with model keys, which no server gets. `has_extras` also offers resources and
        prompts as operations; the proxy needs them, guests do not."""
        self.spec = spec
        self._workspace = workspace
        self._paths = paths
        self._environ = os.environ if environ is None else environ
        self._keys = keys
        self._clock = clock or SystemClock()
        self._format_result = format_result
        self._listeners: list[Listener] = []
        self._connection: ServerConnection | None = None
        self._task: ServerTask | None = None
        self._starting = asyncio.Lock()
        self._is_stale = False
        self._backoff = Backoff(self._clock)
        self._subscriptions = Subscriptions()
        self._roots = Roots(workspace)
        self._has_extras = has_extras
        self._accepted = AcceptedTools(
            spec, pins=pins, annotations=annotations or known_roles(), has_extras=has_extras
        )

    async def __aenter__(self) -> "McpToolset":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_known(self) -> bool:
        """Whether its tools are known before it runs."""
        return self._accepted.is_known

    @property
    def extras(self) -> tuple[str, ...]:
        """What the server offers in addition to tools."""
        return self._accepted.extras

    @property
    def refused(self) -> tuple[RefusedTool, ...]:
        """Listed tools that nothing can call."""
        return self._accepted.refused

    @property
    def is_running(self) -> bool:
        """Whether the server is running."""
        return self._connection is not None and self._connection.is_open

    @property
    def supervisor_pid(self) -> int | None:
        """The process that supervises the running server."""
        return self._connection.supervisor_pid if self._connection else None

    def add_listener(self, listener: Listener) -> None:
        """Pass every later notification to this listener."""
        self._listeners.append(listener)

    def tools(self) -> tuple[Tool, ...]:
        return self._accepted.tools

    @property
    def unread_tools(self) -> tuple[Tool, ...]:
        return self._accepted.unread

    async def start(self) -> None:
        """Start the server and compare its tools with the pins. Raises ToolError if it does not start."""
        await self.connection()

    async def obstacle(self, call: Call, targets: Sequence[Target], *, is_staged: bool) -> str:
        if is_staged:
            return f"{_NOT_STAGED.format(call.operation)}; use the workspace's own tools for files, or change the policy"
        sandbox = self.spec.sandbox
        changed = [path.location.real for path in outside_paths(targets) if path.role != "read-path"]
        if sandbox is None or all(
            sandbox.may_write(path, self._workspace, self._environ) for path in changed
        ):
            return ""
        return (
            f"the sandbox of server {self.spec.name!r} does not let it change {changed[0]!r}; "
            "a person can add the folder to 'allowWrite' in mcp-servers.json"
        )

    @asynccontextmanager
    async def opened(
        self, call: Call, paths: Sequence[PathTarget], *, is_approved: bool
    ) -> AsyncIterator[None]:
        folders = [folder_of(path.location.real) for path in paths]
        connection = await self.connection()
        if self._roots.add(folders):
            await connection.announce_roots(self._roots)
        try:
            yield
        finally:
            if self._roots.remove(folders):
                await asyncio.shield(connection.announce_roots(self._roots))

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                _NOT_STAGED.format(call.operation),
                hint="change the policy to allow, deny or escalate it",
            )
        name = call.operation.partition(".")[2]
        connection = await self.connection()
        if self._has_extras and name in EXTRAS:
            return Performed(result=await connection.call_extra(name, call.arguments))
        tool = self._accepted.tool(name)
        if tool is None:
            raise ToolFailed(
                f"{call.operation} changed since it was accepted, or is gone",
                hint=f"holdfast mcp diff {self.spec.name}",
            )

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            self._notify(Progressed(call=call.id, progress=progress, total=total, message=message or ""))

        arguments = resolve_arguments(tool, call.arguments, self._paths)
        try:
            result = await connection.call(name, arguments, on_progress)
            for _ in range(ROOT_RETRIES if tool.is_read_only and self._roots.has_extra else 0):
                if not result.is_error:
                    break
                # The server may still be checking the roots of this call. Only a read is repeated.
                await asyncio.sleep(ROOT_RETRY_SECONDS)
                result = await connection.call(name, arguments, on_progress)
        except HoldfastError:
            if connection.is_open:
                raise
            await self._handle_lost(connection)
            raise connection.lost_error() from None
        self._backoff.record_success()
        if result.is_error:
            raise tool_error(result)
        return Performed(result=self._format_result(result))

    async def request_logs(self, level: LogLevel) -> None:
        """Request log messages from this level on, if the server sends any."""
        if self._subscriptions.lower_log_level(level) and self._connection is not None:
            await self._connection.set_log_level()

    async def unsubscribe(self, uri: str) -> None:
        """Stop the notifications about a resource."""
        self._subscriptions.resources.discard(uri)
        if self._connection is not None and self._connection.is_open:
            await self._connection.unsubscribe(uri)

    async def connection(self) -> "ServerConnection":
        """The connection to the server, which is started or restarted if it does not run."""
        async with self._starting:
            if self._connection is not None and not self._connection.is_open:
                await self._handle_lost(self._connection)
            if self._connection is None:
                await self._restart()
            assert self._connection is not None
            if self._is_stale:
                await self._compare(self._connection)
            return self._connection

    async def close(self) -> None:
        """Stop the server. Idempotent."""
        task, self._task = self._task, None
        self._connection = None
        if task is not None:
            await task.close()

    async def _restart(self) -> None:
        await self.close()
        wait = self._backoff.seconds_left
        if wait > 0:
            times = self._backoff.failures
            raise ToolFailed(
                f"server {self.spec.name!r} failed {pluralize(times, 'time')}; the next attempt is in {wait:.0f} s",
                hint=f"holdfast mcp doctor {self.spec.name}",
            )
        started_at = self._clock.monotonic()
        try:
            refuse_model_keys(self.spec, self._keys)
            self._task = task = self._new_task()
            async with asyncio.timeout(self.spec.start_seconds):
                connection = await task.ready()
                await self._compare(connection)
        except TimeoutError:
            await self.close()
            reason = f"server {self.spec.name!r} did not answer within {self.spec.start_seconds:g} s"
            self._record_failure(reason)
            raise ToolTimeout(
                reason, hint=f"raise 'startSeconds' of {self.spec.name!r} in mcp-servers.json"
            ) from None
        except HoldfastError as error:
            await self.close()
            self._record_failure(str(error))
            raise
        except BaseException:
            await self.close()
            raise
        self._connection = connection
        seconds = self._clock.monotonic() - started_at
        self._notify(
            ServerStarted(
                server=self.spec.name,
                tools=len(self._accepted),
                seconds=seconds,
                protocol=connection.protocol,
            )
        )

    def _new_task(self) -> ServerTask:
        return ServerTask(
            self.spec,
            workspace=self._workspace,
            roots=self._roots,
            environ=self._environ,
            clock=self._clock,
            listener=self._on_notification,
            on_lost=self._record_failure,
            subscriptions=self._subscriptions,
            protocol=self._accepted.protocol,
        )

    async def _compare(self, connection: "ServerConnection") -> None:
        self._is_stale = False
        try:
            listed = await connection.list_tools()
        except Exception as error:
            raise connection.translate_error(error) from error
        pending = await self._accepted.compare(listed, protocol=connection.protocol, extras=connection.extras)
        if pending is not None:
            self._notify(pending)

    async def _handle_lost(self, connection: "ServerConnection") -> None:
        """Report a lost server once and drop it. Afterwards its exit code is known."""
        if self._connection is not connection:
            return
        self._connection = None
        if connection.supervisor_pid is not None and self._task is not None:
            await self._task.wait_ended()
            return
        await self.close()
        self._record_failure(str(connection.lost_error()))

    def _record_failure(self, reason: str) -> None:
        self._backoff.record_failure()
        self._notify(ServerFailed(server=self.spec.name, reason=reason))

    def _on_notification(self, notification: ServerNotification) -> None:
        if isinstance(notification, ListChanged) and notification.what == "tools":
            self._is_stale = True
        self._notify(notification)

    def _notify(self, notification: ServerNotification) -> None:
        for listener in self._listeners:
            listener(notification)


async def start_servers(toolsets: "tuple[McpToolset, ...]") -> dict[str, HoldfastError]:
    """Start all servers whose tools are not known yet, in parallel. Returns the failures."""
    unknown = [each for each in toolsets if not each.is_known]
    results = await asyncio.gather(*(each.start() for each in unknown), return_exceptions=True)
    failed: dict[str, HoldfastError] = {}
    for toolset, result in zip(unknown, results, strict=True):
        if isinstance(result, HoldfastError):
            failed[toolset.spec.name] = result
        elif isinstance(result, BaseException):
            raise result
    return failed


def health_problems(toolset: McpToolset, pins: Pins) -> tuple[str, ...]:
    """The problems of a running server's tools, each with a fix; empty if there are none."""
    name, known = toolset.spec.name, pins.server(toolset.spec.name)
    found = [f"tool {each.name!r} is refused: {each.reason}" for each in toolset.refused]
    if known is not None and known.held:
        found.append(
            f"blocked until you review them: {', '.join(known.held)} (hint: holdfast mcp diff {name})"
        )
    for tool in toolset.tools():
        if has_invisible(tool.description):
            found.append(f"{tool.name}: its description has invisible characters")
    if denied := [tool.name for tool in toolset.tools() if tool.roles is None]:
        which = "every tool" if len(denied) == len(toolset.tools()) else ", ".join(denied)
        found.append(
            f"denied, because the arguments have no roles: {which} (hint: holdfast mcp annotate {name})"
        )
    return tuple(found)
