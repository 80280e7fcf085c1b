"""The front of the proxy: what an MCP client sees of a session, in either era of the protocol.

Each tools/call, resources/read, prompts/get and the like is a call and goes down the road to the keeper; nothing here
reaches a server by itself but lists. A refusal comes back as a tool error with its reason, so that the model behind the
client can read it.
"""

from collections.abc import Sequence
from typing import Any

import mcp_types
from mcp.server.context import ServerRequestContext as Context
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from holdfast.core import Json, JsonObject
from holdfast.mcp.client.resources import COMPLETE, EXTRAS, GET_PROMPT, READ_RESOURCE
from holdfast.mcp.client.toolset import McpToolset
from holdfast.mcp.contract import (
    GateClient,
    ListChanged,
    Logged,
    Progressed,
    ResourceChanged,
    ServerNotification,
    ServerStarted,
    ToolsPendingReview,
)
from holdfast.mcp.proxy.approvals import ElicitationApprovals
from holdfast.mcp.proxy.calls import CallHandler
from holdfast.mcp.proxy.catalog import ResourceCatalog
from holdfast.mcp.proxy.permission_prompt import PERMISSION_TOOL, operation_for, permission_answer
from holdfast.mcp.proxy.results import as_offered, result_value, text_result, tool_result
from holdfast.mcp.proxy.subscribers import Subscribers
from holdfast.mcp.proxy.subscriptions import SubscriptionHandlers

NAME = "holdfast"
Paging = mcp_types.PaginatedRequestParams | None


class ProxyServer:
    """The protocol server of one session."""

    def __init__(
        self,
        keeper: GateClient,
        *,
        servers: Sequence[McpToolset],
        trusted_clients: frozenset[str],
        can_ask_elsewhere: bool,
        answers_permissions: bool,
    ) -> None:
        self._keeper = keeper
        self._answers_permissions = answers_permissions
        self._servers = {each.spec.name: each for each in servers}
        self._catalogue = ResourceCatalog(servers)
        self._audience = Subscribers()
        self._road = CallHandler(
            keeper,
            asking=ElicitationApprovals(
                keeper, trusted_clients=trusted_clients, can_ask_elsewhere=can_ask_elsewhere
            ),
            catalogue=self._catalogue,
            audience=self._audience,
            servers=self._servers,
        )
        subscribing = SubscriptionHandlers(
            self._road, audience=self._audience, catalogue=self._catalogue, servers=self._servers
        )
        self.server: Server[Any] = _TellingServer(
            NAME,
            instructions="Tools behind a gate: a call may be refused or wait for a person. A refusal gives its reason.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=subscribing.subscribe,
            on_unsubscribe_resource=subscribing.unsubscribe,
            on_subscriptions_listen=subscribing.listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        # Logging is deprecated in the newer era and clients of the older one still ask for it.
        self.server.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, self._set_level)
        # What a client sends back as state is sealed: bound to the very request, to us, and to a time. The library's own
        # tracing is left out: what passes here is the person's and goes to no exporter.
        sealing = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
        self.server.middleware[:] = [sealing]
        for toolset in servers:
            toolset.follow(self._heard)

    # -- tools

    async def _list_tools(self, context: Context, params: Paging) -> mcp_types.ListToolsResult:
        self._audience.remember(context)
        await self._catalogue.ready()
        tools = [as_offered(tool) for tool in self._keeper.tools() if tool.verb not in EXTRAS]
        return mcp_types.ListToolsResult(
            tools=[*tools, PERMISSION_TOOL] if self._answers_permissions else tools
        )

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        self._audience.remember(context)
        if self._answers_permissions and params.name == PERMISSION_TOOL.name:
            return await self._answer_permission(context, params)
        # A tool that is not on offer is asked for all the same: the refusal is on record and gives its reason.
        operation = params.name.replace("__", ".", 1)
        settled = await self._road.settle(context, operation, params.arguments or {}, params)
        return settled if isinstance(settled, mcp_types.InputRequiredResult) else tool_result(settled)

    async def _answer_permission(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        asked = params.arguments or {}
        settled = await self._road.settle(context, operation_for(asked), _object(asked.get("input")), params)
        if isinstance(settled, mcp_types.InputRequiredResult):
            return settled
        return text_result(permission_answer(settled, _object(asked.get("input"))))

    # -- resources and prompts

    async def _list_resources(self, context: Context, params: Paging) -> mcp_types.ListResourcesResult:
        self._audience.remember(context)
        return mcp_types.ListResourcesResult(resources=await self._catalogue.resources())

    async def _list_templates(
        self, context: Context, params: Paging
    ) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult(resource_templates=await self._catalogue.templates())

    async def _list_prompts(self, context: Context, params: Paging) -> mcp_types.ListPromptsResult:
        self._audience.remember(context)
        return mcp_types.ListPromptsResult(prompts=await self._catalogue.prompts())

    async def _read_resource(
        self, context: Context, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult | mcp_types.InputRequiredResult:
        uri = str(params.uri)
        server = await self._catalogue.server_of(uri)
        settled = await self._road.settle(context, f"{server}.{READ_RESOURCE}", {"uri": uri}, params)
        if isinstance(settled, mcp_types.InputRequiredResult):
            return settled
        return mcp_types.ReadResourceResult.model_validate(result_value(settled))

    async def _get_prompt(
        self, context: Context, params: mcp_types.GetPromptRequestParams
    ) -> mcp_types.GetPromptResult | mcp_types.InputRequiredResult:
        server, _, name = params.name.partition("__")
        arguments: JsonObject = {"name": name, "arguments": dict(params.arguments or {})}
        settled = await self._road.settle(context, f"{server}.{GET_PROMPT}", arguments, params)
        if isinstance(settled, mcp_types.InputRequiredResult):
            return settled
        return mcp_types.GetPromptResult.model_validate(result_value(settled))

    async def _complete(
        self, context: Context, params: mcp_types.CompleteRequestParams
    ) -> mcp_types.CompleteResult:
        given = params.context.arguments if params.context and params.context.arguments else {}
        word: JsonObject = {
            "argument": params.argument.name,
            "value": params.argument.value,
            "context": dict(given),
        }
        if isinstance(params.ref, mcp_types.PromptReference):
            server, _, name = params.ref.name.partition("__")
            word["prompt"] = name
        else:
            server = await self._catalogue.server_of_template(params.ref.uri)
            word["template"] = params.ref.uri
        answer = await self._road.settle_elsewhere(f"{server}.{COMPLETE}", word)
        return mcp_types.CompleteResult.model_validate(result_value(answer))

    # -- news

    async def _set_level(
        self, context: Context, params: mcp_types.SetLevelRequestParams
    ) -> mcp_types.EmptyResult:
        self._audience.set_level(context, params.level)
        for toolset in self._servers.values():
            await toolset.want_logs(params.level)
        return mcp_types.EmptyResult()

    def _heard(self, news: ServerNotification) -> None:
        match news:
            case Progressed():
                self._road.reports.hear(news)
            case ServerStarted() | ToolsPendingReview() | ListChanged(what="tools"):
                self._audience.tell(ToolsListChanged())
            case ListChanged(what="resources"):
                self._audience.tell(ResourcesListChanged())
            case ListChanged(what="prompts"):
                self._audience.tell(PromptsListChanged())
            case ResourceChanged():
                self._audience.tell(ResourceUpdated(news.uri))
            case Logged():
                self._audience.log(news)
            case _:
                pass


class _TellingServer(Server[Any]):
    """The library's server, which says to every client of the older era, over stdio or HTTP, that it tells of changes."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *others: Any, **named: Any
    ) -> InitializationOptions:
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *others, **named)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
