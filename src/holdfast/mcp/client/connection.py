"""One connection to a running MCP server, over any transport, with the legacy or the 2026-07 protocol.

Only this module and those it imports load the MCP library; `server_task` imports it when a server is first needed. The
library requires that the task that enters its context also leaves it, so each connection runs in its own task.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import mcp_types
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

import holdfast.mcp.client.resources as resources
from holdfast.core import VERSION, Clock, Json, JsonObject
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.mcp.client.endpoint import Endpoint, load_connector
from holdfast.mcp.client.errors import call_error, is_connection_closed, start_error
from holdfast.mcp.client.notifications import NotificationReceiver, RateLimiter
from holdfast.mcp.client.roots import Roots
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.client.tool_definitions import MAX_TOOLS
from holdfast.mcp.config.servers import ServerSpec
from holdfast.mcp.contract import Listener, is_legacy
from holdfast.process.supervised import SupervisedProcess

MAX_PAGES = 50
MAX_INPUT_ROUNDS = 3
"""How often a server may ask for the roots during one call."""
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class ServerConnection:
    """A server that answers. Created by `connect`; any task may make calls."""

    def __init__(
        self,
        spec: ServerSpec,
        client: Client,
        process: SupervisedProcess | None,
        *,
        rate_limiter: RateLimiter,
        notifications: NotificationReceiver,
        subscriptions: Subscriptions,
    ) -> None:
        self._spec = spec
        self._client = client
        self._process = process
        self._notifications = notifications
        self._subscriptions = subscriptions
        self.rate_limiter = rate_limiter
        self._is_lost = False

    @property
    def client(self) -> Client:
        """The library's client, for requests that are passed through unchanged."""
        return self._client

    @property
    def protocol(self) -> str:
        """The negotiated protocol version."""
        return self._client.protocol_version

    @property
    def is_open(self) -> bool:
        """Whether the server can still answer, as far as is known."""
        return not self._is_lost and (self._process is None or not self._process.ended.is_set())

    async def wait_until_lost(self) -> None:
        """Return when the server's program ends on its own. Never returns for a server without a program."""
        await (self._process.ended if self._process else asyncio.Event()).wait()

    @property
    def supervisor_pid(self) -> int | None:
        """The process that supervises the server; None for a server without a program."""
        return self._process.pid if self._process else None

    @property
    def extras(self) -> tuple[str, ...]:
        """What the server offers in addition to tools."""
        has = self._client.server_capabilities
        extras = [name for name in ("resources", "prompts", "completions") if getattr(has, name) is not None]
        return (*extras, *(["subscriptions"] if has.resources and has.resources.subscribe else []))

    async def list_tools(self) -> list[JsonObject]:
        """The tools of all pages, up to a limit."""
        tools: list[JsonObject] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
            tools += [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(tools) > MAX_TOOLS:
                break
        return tools

    async def call(
        self, tool: str, arguments: JsonObject, on_progress: ProgressFnT
    ) -> mcp_types.CallToolResult:
        """Call a tool. Raises ToolFailed and ToolTimeout."""
        level = None if is_legacy(self.protocol) else self._subscriptions.log_level
        meta: Any = {_LOG_LEVEL: level} if level is not None else None
        try:
            return await self._client.call_tool(
                tool,
                arguments,
                read_timeout_seconds=self._spec.call_seconds,
                progress_callback=on_progress,
                meta=meta,
            )
        except Exception as error:
            raise self.translate_error(error) from error

    async def call_extra(self, operation: str, arguments: JsonObject) -> Json:
        """Use something the server offers in addition to tools. Raises ToolFailed and ToolTimeout."""
        try:
            async with asyncio.timeout(self._spec.call_seconds):
                result = await self._call_extra(operation, arguments)
                return result.model_dump(by_alias=True, mode="json", exclude_none=True)
        except TimeoutError:
            raise ToolTimeout(f"server {self._spec.name!r} did not answer in time") from None
        except Exception as error:
            raise self.translate_error(error) from error

    async def _call_extra(self, operation: str, arguments: JsonObject) -> mcp_types.Result:
        match operation:
            case resources.READ_RESOURCE:
                return await self._client.read_resource(str(arguments["uri"]))
            case resources.GET_PROMPT:
                values = _string_map(arguments, "arguments")
                return await self._client.get_prompt(str(arguments["name"]), values)
            case resources.COMPLETE:
                partial = {"name": str(arguments["argument"]), "value": str(arguments["value"])}
                context = _string_map(arguments, "context")
                return await self._client.complete(_reference(arguments), partial, context)
            case resources.SUBSCRIBE:
                self._subscriptions.add_resource(str(arguments["uri"]))
                await self._notifications.subscribe(self._client, str(arguments["uri"]))
                return mcp_types.EmptyResult()
            case _:
                raise ToolFailed(f"there is no operation {operation!r}")

    async def unsubscribe(self, uri: str) -> None:
        """Stop the notifications of a resource, if the server answers in time."""
        with contextlib.suppress(MCPError, TimeoutError):
            async with asyncio.timeout(self._spec.call_seconds):
                await self._notifications.unsubscribe(self._client, uri)

    async def announce_roots(self, roots: Roots) -> None:
        """Report changed roots, and wait until the server knows them. With the 2026-07 protocol it asks in each call."""
        if not is_legacy(self.protocol) or not self.is_open:
            return
        with contextlib.suppress(MCPError, TimeoutError):
            async with asyncio.timeout(self._spec.call_seconds):
                session = self._client.session
                await session.send_notification(mcp_types.RootsListChangedNotification())
                await roots.wait_until_listed(
                    lambda: session.send_request(mcp_types.PingRequest(), mcp_types.EmptyResult)
                )

    async def set_log_level(self) -> None:
        """Send the requested log level to the server, if it answers in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._spec.call_seconds):
                await self._notifications.set_log_level(self._client)

    def translate_error(self, error: Exception) -> HoldfastError:
        """Turn an exception of the library into one of ours."""
        if is_connection_closed(error):
            self._is_lost = True
            return self.lost_error()
        return call_error(error, self._spec)

    def lost_error(self) -> ToolFailed:
        """Why the server no longer answers. The exit code is known once the connection is closed."""
        reason = self._process.exit_description if self._process else "closed the connection"
        return ToolFailed(f"server {self._spec.name!r} {reason}", hint="the next call restarts it")


@contextlib.asynccontextmanager
async def connect(
    spec: ServerSpec,
    *,
    process: SupervisedProcess | None,
    roots: Roots,
    environ: Mapping[str, str],
    clock: Clock,
    listener: Listener,
    subscriptions: Subscriptions,
    protocol: str = "",
) -> AsyncIterator[ServerConnection]:
    """Connect to a server until the block exits. `protocol` is the version of the last connection; it saves the probe."""
    rate_limiter = RateLimiter(clock)
    # The stdio transport already limits what a program sends.
    own_limiter = None if spec.transport.starts_program else rate_limiter
    notifications = NotificationReceiver(
        spec.name, listener=listener, subscriptions=subscriptions, rate_limiter=own_limiter
    )

    async def list_roots(context: ClientRequestContext) -> mcp_types.ListRootsResult | mcp_types.ErrorData:
        listed: list[Any] = [{"uri": uri, "name": name} for uri, name in roots.list()]
        return mcp_types.ListRootsResult(roots=listed)

    endpoint = Endpoint(spec=spec, environ=environ, rate_limiter=rate_limiter, process=process)
    # No sampling and no elicitation: a server must not use our model or ask a person through us.
    client = Client(
        load_connector(spec)(endpoint),
        mode="legacy" if protocol and is_legacy(protocol) else "auto",
        list_roots_callback=list_roots,
        message_handler=notifications.handle,
        client_info=mcp_types.Implementation(name="holdfast", version=VERSION),
        input_required_max_rounds=MAX_INPUT_ROUNDS,
        cache=None,
    )
    try:
        async with client, contextlib.aclosing(notifications):
            await notifications.start(client)
            yield ServerConnection(
                spec,
                client,
                process,
                rate_limiter=rate_limiter,
                notifications=notifications,
                subscriptions=subscriptions,
            )
    except Exception as error:
        raise start_error(error, spec, process.exit_description if process is not None else "") from error


def _string_map(arguments: JsonObject, name: str) -> dict[str, str]:
    given = arguments.get(name)
    return {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _reference(arguments: JsonObject) -> mcp_types.PromptReference | mcp_types.ResourceTemplateReference:
    if "prompt" in arguments:
        return mcp_types.PromptReference(name=str(arguments["prompt"]))
    return mcp_types.ResourceTemplateReference(uri=str(arguments.get("template", "")))
