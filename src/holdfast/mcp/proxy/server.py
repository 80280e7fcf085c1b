"""The MCP server of the proxy: what a client sees of a session, with the legacy or the 2026-07 protocol.

Each `tools/call`, `resources/read`, `prompts/get` and the like is a call that passes the gate. Only lists reach a server
directly. A refusal is returned as a tool error with its reason, so that the client's model can read it.
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

from holdfast.core import VERSION, Json, JsonObject
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
from holdfast.mcp.proxy.permission_prompt import PERMISSION_TOOL, operation_for, permission_response
from holdfast.mcp.proxy.results import result_value, text_result, to_mcp_tool, tool_result
from holdfast.mcp.proxy.subscribers import Subscribers
from holdfast.mcp.proxy.subscriptions import SubscriptionHandlers

NAME = "holdfast"
Paging = mcp_types.PaginatedRequestParams | None


class ProxyServer:
    """The MCP server of one session."""

    def __init__(
        self,
        gate: GateClient,
        *,
        servers: Sequence[McpToolset],
        trusted_clients: frozenset[str],
        has_other_approvers: bool,
        answers_permission_prompts: bool,
    ) -> None:
        self._gate = gate
        self._answers_permission_prompts = answers_permission_prompts
        self._servers = {each.spec.name: each for each in servers}
        self._catalog = ResourceCatalog(servers)
        self._subscribers = Subscribers()
        self._calls = CallHandler(
            gate,
            approvals=ElicitationApprovals(
                gate, trusted_clients=trusted_clients, has_other_approvers=has_other_approvers
            ),
            catalog=self._catalog,
            subscribers=self._subscribers,
            servers=self._servers,
        )
        handlers = SubscriptionHandlers(
            self._calls, subscribers=self._subscribers, catalog=self._catalog, servers=self._servers
        )
        self.server: Server[Any] = _NotifyingServer(
            NAME,
            version=VERSION,
            instructions="Tools behind a gate: a call may be refused or wait for approval. A refusal gives its reason.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=handlers.subscribe,
            on_unsubscribe_resource=handlers.unsubscribe,
            on_subscriptions_listen=handlers.listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        # The 2026-07 protocol deprecates logging/setLevel, and legacy clients still send it.
        self.server.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, self._set_level)
        # The request state is sealed: bound to this request, to this server and to a time. The library's tracing
        # middleware is removed: what passes here is private and must reach no exporter.
        sealing = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
        self.server.middleware[:] = [sealing]
        for toolset in servers:
            toolset.add_listener(self._on_notification)

    # -- tools

    async def _list_tools(self, context: Context, params: Paging) -> mcp_types.ListToolsResult:
        self._subscribers.add_client(context)
        await self._catalog.ensure_started()
        tools = [to_mcp_tool(tool) for tool in self._gate.tools() if tool.verb not in EXTRAS]
        return mcp_types.ListToolsResult(
            tools=[*tools, PERMISSION_TOOL] if self._answers_permission_prompts else tools
        )

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        self._subscribers.add_client(context)
        if self._answers_permission_prompts and params.name == PERMISSION_TOOL.name:
            return await self._answer_permission_prompt(context, params)
        # A tool that is not offered is submitted too, so that the refusal is recorded with its reason.
        operation = params.name.replace("__", ".", 1)
        answer = await self._calls.handle(context, operation, params.arguments or {}, params)
        return answer if isinstance(answer, mcp_types.InputRequiredResult) else tool_result(answer)

    async def _answer_permission_prompt(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        asked = params.arguments or {}
        answer = await self._calls.handle(context, operation_for(asked), _object(asked.get("input")), params)
        if isinstance(answer, mcp_types.InputRequiredResult):
            return answer
        return text_result(permission_response(answer, _object(asked.get("input"))))

    # -- resources and prompts

    async def _list_resources(self, context: Context, params: Paging) -> mcp_types.ListResourcesResult:
        self._subscribers.add_client(context)
        return mcp_types.ListResourcesResult(resources=await self._catalog.resources())

    async def _list_templates(
        self, context: Context, params: Paging
    ) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult(resource_templates=await self._catalog.templates())

    async def _list_prompts(self, context: Context, params: Paging) -> mcp_types.ListPromptsResult:
        self._subscribers.add_client(context)
        return mcp_types.ListPromptsResult(prompts=await self._catalog.prompts())

    async def _read_resource(
        self, context: Context, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult | mcp_types.InputRequiredResult:
        uri = str(params.uri)
        server = await self._catalog.server_of(uri)
        answer = await self._calls.handle(context, f"{server}.{READ_RESOURCE}", {"uri": uri}, params)
        if isinstance(answer, mcp_types.InputRequiredResult):
            return answer
        return mcp_types.ReadResourceResult.model_validate(result_value(answer))

    async def _get_prompt(
        self, context: Context, params: mcp_types.GetPromptRequestParams
    ) -> mcp_types.GetPromptResult | mcp_types.InputRequiredResult:
        server, _, name = params.name.partition("__")
        arguments: JsonObject = {"name": name, "arguments": dict(params.arguments or {})}
        answer = await self._calls.handle(context, f"{server}.{GET_PROMPT}", arguments, params)
        if isinstance(answer, mcp_types.InputRequiredResult):
            return answer
        return mcp_types.GetPromptResult.model_validate(result_value(answer))

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
            server = await self._catalog.server_of_template(params.ref.uri)
            word["template"] = params.ref.uri
        answer = await self._calls.handle_without_elicitation(f"{server}.{COMPLETE}", word)
        return mcp_types.CompleteResult.model_validate(result_value(answer))

    # -- notifications

    async def _set_level(
        self, context: Context, params: mcp_types.SetLevelRequestParams
    ) -> mcp_types.EmptyResult:
        self._subscribers.set_log_level(context, params.level)
        for toolset in self._servers.values():
            await toolset.request_logs(params.level)
        return mcp_types.EmptyResult()

    def _on_notification(self, notification: ServerNotification) -> None:
        match notification:
            case Progressed():
                self._calls.progress.put(notification)
            case ServerStarted() | ToolsPendingReview() | ListChanged(what="tools"):
                self._subscribers.notify(ToolsListChanged())
            case ListChanged(what="resources"):
                self._subscribers.notify(ResourcesListChanged())
            case ListChanged(what="prompts"):
                self._subscribers.notify(PromptsListChanged())
            case ResourceChanged():
                self._subscribers.notify(ResourceUpdated(notification.uri))
            case Logged():
                self._subscribers.log(notification)
            case _:
                pass


class _NotifyingServer(Server[Any]):
    """The library's server, which also announces list changes to legacy clients."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *others: Any, **named: Any
    ) -> InitializationOptions:
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *others, **named)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
