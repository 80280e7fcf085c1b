"""A connection: one server that runs and answers, over stdio or streamable HTTP, in either era of the protocol.

This module is the only one on the client's side that loads the protocol library; `toolset` loads it when a server is
first needed. The library wants its context left by the task that entered it, so each connection has a task of its own.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import mcp_types
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

import holdfast.mcp.client.resources as resources
from holdfast.core import Clock, Json, JsonObject
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.mcp.client.errors import explained, is_ending, start_failure
from holdfast.mcp.client.http import connect_http
from holdfast.mcp.client.notifications import NEWER_ERA, Listening, RateLimiter, Tell
from holdfast.mcp.client.stdio import connect_stdio
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.client.tool_definitions import MAX_TOOLS
from holdfast.mcp.config.environment import headers_for
from holdfast.mcp.config.servers import ServerSpec
from holdfast.process.supervised import SupervisedProcess

MAX_PAGES = 50
MAX_INPUT_ROUNDS = 3
"""A server may ask for the roots while a call runs, not keep asking."""
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Connection:
    """A server that answers. Made by `connect`; calls may come from any task."""

    def __init__(
        self,
        spec: ServerSpec,
        client: Client,
        ward: SupervisedProcess | None,
        *,
        ration: RateLimiter,
        listening: Listening,
        wishes: Subscriptions,
    ) -> None:
        self._spec = spec
        self._client = client
        self._ward = ward
        self._listening = listening
        self._wishes = wishes
        self.ration = ration
        self._is_lost = False

    @property
    def client(self) -> Client:
        """The library's client, for what is handed through unchanged."""
        return self._client

    @property
    def protocol(self) -> str:
        """The version both sides speak."""
        return self._client.protocol_version

    @property
    def is_open(self) -> bool:
        """Whether it can still answer, as far as we know."""
        return not self._is_lost and (self._ward is None or not self._ward.ended.is_set())

    async def lost(self) -> None:
        """Return when the server has ended by itself; one reached by HTTP never tells."""
        await (self._ward.ended if self._ward else asyncio.Event()).wait()

    @property
    def warden(self) -> int | None:
        """The process that stands over the server; None for one reached by HTTP."""
        return self._ward.pid if self._ward else None

    @property
    def offers(self) -> tuple[str, ...]:
        """What the server has beside tools."""
        has = self._client.server_capabilities
        offers = [name for name in ("resources", "prompts", "completions") if getattr(has, name) is not None]
        return (*offers, *(["subscriptions"] if has.resources and has.resources.subscribe else []))

    async def list_tools(self) -> list[JsonObject]:
        """Every tool on every page, up to a bound."""
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
        level = self._wishes.log_level if self.protocol >= NEWER_ERA else None
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
            raise self.explain(error) from error

    async def fetch(self, what: str, arguments: JsonObject) -> Json:
        """Use what the server has beside tools. Raises ToolFailed and ToolTimeout."""
        try:
            async with asyncio.timeout(self._spec.call_seconds):
                fetched = await self._fetch(what, arguments)
                return fetched.model_dump(by_alias=True, mode="json", exclude_none=True)
        except TimeoutError:
            raise ToolTimeout(f"server {self._spec.name!r} did not answer in time") from None
        except Exception as error:
            raise self.explain(error) from error

    async def _fetch(self, what: str, arguments: JsonObject) -> mcp_types.Result:
        match what:
            case resources.READ_RESOURCE:
                return await self._client.read_resource(str(arguments["uri"]))
            case resources.GET_PROMPT:
                return await self._client.get_prompt(str(arguments["name"]), _words(arguments, "arguments"))
            case resources.COMPLETE:
                word = {"name": str(arguments["argument"]), "value": str(arguments["value"])}
                return await self._client.complete(_reference(arguments), word, _words(arguments, "context"))
            case resources.SUBSCRIBE:
                self._wishes.add(str(arguments["uri"]))
                await self._listening.subscribe(self._client, str(arguments["uri"]))
                return mcp_types.EmptyResult()
            case _:
                raise ToolFailed(f"there is no operation {what!r}")

    async def unsubscribe(self, uri: str) -> None:
        """Tell the server that nobody wants to hear of a resource any more."""
        with contextlib.suppress(MCPError, TimeoutError):
            async with asyncio.timeout(self._spec.call_seconds):
                await self._listening.unsubscribe(self._client, uri)

    async def set_log_level(self) -> None:
        """Have the server log from the wished level on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._spec.call_seconds):
                await self._listening.set_log_level(self._client)

    def explain(self, error: Exception) -> HoldfastError:
        """What the library raised, in our words."""
        if is_ending(error):
            self._is_lost = True
            return self.ending()
        return explained(error, self._spec)

    def ending(self) -> ToolFailed:
        """Why it no longer answers; the exit code is known once the connection is closed."""
        ending = self._ward.exit_description if self._ward else "closed the connection"
        return ToolFailed(f"server {self._spec.name!r} {ending}", hint="the next call starts it again")


@contextlib.asynccontextmanager
async def connect(
    spec: ServerSpec,
    *,
    ward: SupervisedProcess | None,
    workspace: Path,
    environ: Mapping[str, str],
    clock: Clock,
    tell: Tell,
    wishes: Subscriptions,
    protocol: str = "",
) -> AsyncIterator[Connection]:
    """A server, greeted, until the block is left; `ward` is its program. `protocol` is what it spoke last, to skip the probe."""
    ration = RateLimiter(clock)
    listening = Listening(spec.name, tell=tell, wishes=wishes, ration=ration if spec.url else None)

    async def roots(context: ClientRequestContext) -> mcp_types.ListRootsResult | mcp_types.ErrorData:
        uri: Any = workspace.as_uri()
        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri=uri, name="workspace")])

    transport = (
        connect_stdio(ward, ration)
        if ward is not None
        else connect_http(spec.url, headers_for(spec, environ))
    )
    # Sampling and elicitation are not offered: a server gets neither our model nor a person's ear through us.
    client = Client(
        transport,
        mode="legacy" if protocol and protocol < "2026" else "auto",
        list_roots_callback=roots,
        message_handler=listening.hear,
        client_info=mcp_types.Implementation(name="holdfast", version="0.1.0"),
        input_required_max_rounds=MAX_INPUT_ROUNDS,
        cache=None,
    )
    try:
        async with client, contextlib.aclosing(listening):
            await listening.begin(client)
            yield Connection(spec, client, ward, ration=ration, listening=listening, wishes=wishes)
    except Exception as error:
        ending = ward.exit_description if ward is not None else ""
        raise start_failure(error, spec, ending) from error


def _words(arguments: JsonObject, name: str) -> dict[str, str]:
    given = arguments.get(name)
    return {key: str(word) for key, word in given.items()} if isinstance(given, dict) else {}


def _reference(arguments: JsonObject) -> mcp_types.PromptReference | mcp_types.ResourceTemplateReference:
    if "prompt" in arguments:
        return mcp_types.PromptReference(name=str(arguments["prompt"]))
    return mcp_types.ResourceTemplateReference(uri=str(arguments.get("template", "")))
