"""The toolset of one MCP server: started when first needed, watched, restarted, and held to its word.

Below it lies the connection; above it, the gate, which alone calls `perform`. While the pins know the server, its tools
are on offer before it runs, so that opening a session waits for nobody.

The health of a server: what a person should know of it before an agent uses it.
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core import Call, Clock, Paths, Performed, SystemClock, Tool, pluralize
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.mcp.client.accepted_tools import AcceptedTools
from holdfast.mcp.client.resources import EXTRAS
from holdfast.mcp.client.results import Present, failure_of, for_server, present_plainly
from holdfast.mcp.client.server_task import Backoff, ServerTask
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.client.tool_definitions import Refusal
from holdfast.mcp.config.environment import refuse_keys
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
    from holdfast.mcp.client.connection import Connection
from holdfast.core import has_invisible


class McpToolset:
    """One server as a toolset. Close it, or use it as a context manager."""

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
        present: Present = present_plainly,
        has_extras: bool = False,
    ) -> None:
        """`keys` are variables that hold keys of models, which no server is given. `has_extras` offers resources and
        prompts as operations too; guests have no use for them, the proxy has."""
        self.spec = spec
        self._workspace = workspace
        self._paths = paths
        self._environ = os.environ if environ is None else environ
        self._keys = keys
        self._clock = clock or SystemClock()
        self._present = present
        self._followers: list[Listener] = []
        self._connection: Connection | None = None
        self._holding: ServerTask | None = None
        self._starting = asyncio.Lock()
        self._is_stale = False
        self._backoff = Backoff(self._clock)
        self._wishes = Subscriptions()
        self._has_extras = has_extras
        self._offer = AcceptedTools(
            spec, pins=pins, annotations=annotations or known_roles(), has_extras=has_extras
        )

    async def __aenter__(self) -> "McpToolset":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_known(self) -> bool:
        """Whether its tools can be offered before it runs."""
        return self._offer.is_known

    @property
    def offers(self) -> tuple[str, ...]:
        """What the server has beside tools."""
        return self._offer.beside

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """Tools the server lists and nobody can call."""
        return self._offer.refused

    @property
    def is_running(self) -> bool:
        """Whether the server answers now."""
        return self._connection is not None and self._connection.is_open

    @property
    def warden(self) -> int | None:
        """The process that stands over the running server."""
        return self._connection.warden if self._connection else None

    def follow(self, follower: Listener) -> None:
        """Tell this follower all news from now on."""
        self._followers.append(follower)

    def tools(self) -> tuple[Tool, ...]:
        return self._offer.tools

    async def start(self) -> None:
        """Have the server running and its list compared with the pins. Raises ToolError where it does not come up."""
        await self.connection()

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                f"{call.operation} acts outside the workspace and cannot be staged",
                hint="let the policy allow, deny or escalate it",
            )
        name = call.operation.partition(".")[2]
        connection = await self.connection()
        if self._has_extras and name in EXTRAS:
            return Performed(result=await connection.fetch(name, call.arguments))
        tool = self._offer.tool(name)
        if tool is None:
            raise ToolFailed(
                f"{call.operation} is not what it was when it was accepted, or is gone",
                hint=f"holdfast mcp diff {self.spec.name}",
            )

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            self._tell(Progressed(call=call.id, progress=progress, total=total, message=message or ""))

        try:
            result = await connection.call(name, for_server(tool, call.arguments, self._paths), on_progress)
        except HoldfastError:
            if connection.is_open:
                raise
            await self._bury(connection)
            raise connection.ending() from None
        self._backoff.succeeded()
        if result.is_error:
            raise failure_of(result)
        return Performed(result=self._present(result))

    async def want_logs(self, level: LogLevel) -> None:
        """Have log messages from this level on told as news, where the server has some."""
        if self._wishes.lower(level) and self._connection is not None:
            await self._connection.set_log_level()

    async def forget_resource(self, uri: str) -> None:
        """Nobody wants to hear of this resource any more."""
        self._wishes.resources.discard(uri)
        if self._connection is not None and self._connection.is_open:
            await self._connection.unsubscribe(uri)

    async def connection(self) -> "Connection":
        """The running server; starts it, or starts it again, where it does not run."""
        async with self._starting:
            if self._connection is not None and not self._connection.is_open:
                await self._bury(self._connection)
            if self._connection is None:
                await self._restart()
            assert self._connection is not None
            if self._is_stale:
                await self._compare(self._connection)
            return self._connection

    async def close(self) -> None:
        """End the server. Idempotent."""
        holding, self._holding = self._holding, None
        self._connection = None
        if holding is not None:
            await holding.close()

    async def _restart(self) -> None:
        await self.close()
        wait = self._backoff.seconds_left
        if wait > 0:
            times = self._backoff.failures
            raise ToolFailed(
                f"server {self.spec.name!r} failed {pluralize(times, 'time')}; it is tried again in {wait:.0f} s",
                hint=f"holdfast mcp doctor {self.spec.name}",
            )
        began = self._clock.monotonic()
        try:
            refuse_keys(self.spec, self._keys)
            self._holding = holding = self._hold()
            async with asyncio.timeout(self.spec.start_seconds):
                connection = await holding.ready()
                await self._compare(connection)
        except TimeoutError:
            await self.close()
            reason = f"server {self.spec.name!r} did not answer within {self.spec.start_seconds:g} s"
            self._failed(reason)
            raise ToolTimeout(reason, hint="'startSeconds' of the entry sets the limit") from None
        except HoldfastError as error:
            await self.close()
            self._failed(str(error))
            raise
        except BaseException:
            await self.close()
            raise
        self._connection = connection
        seconds = self._clock.monotonic() - began
        self._tell(
            ServerStarted(
                server=self.spec.name, tools=len(self._offer), seconds=seconds, protocol=connection.protocol
            )
        )

    def _hold(self) -> ServerTask:
        return ServerTask(
            self.spec,
            workspace=self._workspace,
            environ=self._environ,
            clock=self._clock,
            tell=self._heard,
            on_loss=self._failed,
            wishes=self._wishes,
            protocol=self._offer.protocol,
        )

    async def _compare(self, connection: "Connection") -> None:
        self._is_stale = False
        try:
            listed = await connection.list_tools()
        except Exception as error:
            raise connection.explain(error) from error
        held = self._offer.compare(listed, protocol=connection.protocol, beside=connection.offers)
        if held is not None:
            self._tell(held)

    async def _bury(self, connection: "Connection") -> None:
        """Have a lost server reported, once, and forgotten; afterwards its exit code is known."""
        if self._connection is not connection:
            return
        self._connection = None
        if connection.warden is not None and self._holding is not None:
            await self._holding.ended()
            return
        await self.close()
        self._failed(str(connection.ending()))

    def _failed(self, reason: str) -> None:
        self._backoff.failed()
        self._tell(ServerFailed(server=self.spec.name, reason=reason))

    def _heard(self, news: ServerNotification) -> None:
        if isinstance(news, ListChanged) and news.what == "tools":
            self._is_stale = True
        self._tell(news)

    def _tell(self, news: ServerNotification) -> None:
        for follower in self._followers:
            follower(news)


async def start_servers(toolsets: "tuple[McpToolset, ...]") -> dict[str, HoldfastError]:
    """Start what cannot wait, all at once: every server whose tools are not known yet. Returns those that failed."""
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
    """What is wrong with a running server's tools, each with a way out; empty where all is well."""
    name, known = toolset.spec.name, pins.server(toolset.spec.name)
    found = [f"tool {each.name!r} is refused: {each.reason}" for each in toolset.refused]
    if known is not None and known.held:
        found.append(f"held: {', '.join(known.held)} (hint: holdfast mcp diff {name})")
    for tool in toolset.tools():
        if has_invisible(tool.description):
            found.append(f"{tool.name}: its description holds characters that are not seen")
        if tool.roles is None:
            found.append(
                f"{tool.name}: denied, its arguments have no roles (hint: holdfast mcp annotate {name})"
            )
    return tuple(found)
