"""The front of the proxy: what an MCP client sees of a session, in either era of the protocol.

Each tools/call, resources/read and prompts/get is a call and goes to the keeper; nothing here reaches a server by itself
but lists. A refusal comes back as a tool error with its reason, so that the model behind the client can read it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    Json,
    JsonObject,
    Parked,
)
from holdfast.mcp.answers import as_offered, result_value, text_result, tool_result
from holdfast.mcp.asking import Asking, Ticket
from holdfast.mcp.catalogue import Catalogue
from holdfast.mcp.contract import (
    Keeper,
    ListChanged,
    News,
    Progressed,
    ResourceChanged,
    ServerStarted,
    ToolsHeld,
)
from holdfast.mcp.extras import EXTRAS, GET_PROMPT, READ_RESOURCE
from holdfast.mcp.permissions import PERMISSION_TOOL, operation_for, permission_answer
from holdfast.mcp.reporting import Reports
from holdfast.mcp.toolset import McpToolset

NAME = "holdfast"
Context = ServerRequestContext[Any, Any]


class Front:
    """The protocol server of one session."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        servers: Sequence[McpToolset],
        trusted_clients: frozenset[str],
        can_ask_elsewhere: bool,
        answers_permissions: bool,
    ) -> None:
        self._keeper = keeper
        self._catalogue = Catalogue(servers)
        self._asking = Asking(keeper, trusted_clients=trusted_clients, can_ask_elsewhere=can_ask_elsewhere)
        self._answers_permissions = answers_permissions
        self._bus = InMemorySubscriptionBus()
        self._reports = Reports()
        self._listeners: dict[int, Context] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self.server: Server[Any] = Server(
            NAME,
            instructions="Tools behind a gate: a call may be refused or wait for a person. A refusal gives its reason.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        # What a client sends back as state is sealed: bound to the very request, to us, and to a time. The library's own
        # tracing is left out: what passes here is the person's and goes to no exporter.
        sealing = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
        self.server.middleware[:] = [sealing]
        for toolset in servers:
            toolset.follow(self._heard)

    def options(self) -> InitializationOptions:
        """What a client of the older era is told at the start."""
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return self.server.create_initialization_options(changes)

    # -- tools

    async def _list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        self._remember(context)
        await self._catalogue.ready()
        tools = [as_offered(tool) for tool in self._keeper.tools() if tool.verb not in EXTRAS]
        return mcp_types.ListToolsResult(
            tools=[*tools, PERMISSION_TOOL] if self._answers_permissions else tools
        )

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        self._remember(context)
        if self._answers_permissions and params.name == PERMISSION_TOOL.name:
            return await self._answer_permission(context, params)
        # A tool that is not on offer is asked for all the same: the refusal is on record and gives its reason.
        operation = params.name.replace("__", ".", 1)
        settled = await self._settle(context, operation, params.arguments or {}, params)
        return settled if isinstance(settled, mcp_types.InputRequiredResult) else tool_result(settled)

    async def _answer_permission(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        asked = params.arguments or {}
        settled = await self._settle(context, operation_for(asked), _object(asked.get("input")), params)
        if isinstance(settled, mcp_types.InputRequiredResult):
            return settled
        return text_result(permission_answer(settled, _object(asked.get("input"))))

    # -- resources and prompts

    async def _list_resources(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourcesResult:
        self._remember(context)
        return mcp_types.ListResourcesResult(resources=await self._catalogue.resources())

    async def _list_templates(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult(resource_templates=await self._catalogue.templates())

    async def _list_prompts(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListPromptsResult:
        self._remember(context)
        return mcp_types.ListPromptsResult(prompts=await self._catalogue.prompts())

    async def _read_resource(
        self, context: Context, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult | mcp_types.InputRequiredResult:
        server = await self._catalogue.server_of(str(params.uri))
        settled = await self._settle(context, f"{server}.{READ_RESOURCE}", {"uri": str(params.uri)}, params)
        if isinstance(settled, mcp_types.InputRequiredResult):
            return settled
        return mcp_types.ReadResourceResult.model_validate(result_value(settled))

    async def _get_prompt(
        self, context: Context, params: mcp_types.GetPromptRequestParams
    ) -> mcp_types.GetPromptResult | mcp_types.InputRequiredResult:
        server, _, name = params.name.partition("__")
        arguments: JsonObject = {"name": name, "arguments": dict(params.arguments or {})}
        settled = await self._settle(context, f"{server}.{GET_PROMPT}", arguments, params)
        if isinstance(settled, mcp_types.InputRequiredResult):
            return settled
        return mcp_types.GetPromptResult.model_validate(result_value(settled))

    # -- the one road

    async def _settle(
        self,
        context: Context,
        operation: str,
        arguments: JsonObject,
        params: mcp_types.InputResponseRequestParams,
    ) -> Answer | mcp_types.InputRequiredResult:
        """Submit a call until it is settled, asking the client's human in between where that counts."""
        await self._catalogue.ready()
        ticket = Ticket.read(params.request_state)
        call = Call(
            id=ticket.call if ticket else self._keeper.next_call(),
            operation=operation,
            arguments=arguments,
            principal=EXTERNAL,
        )
        if ticket is not None:
            await self._asking.take(context, ticket, params.input_responses or {})
        async with self._reports.passed_on(context, call.id):
            answer = await self._keeper.submit(call)
            while isinstance(answer, Parked):
                asked = await self._asking.ask(context, call, answer.escalation)
                if asked is not None:
                    return asked
                answer = await self._keeper.submit(call)
        return answer

    # -- news

    def _heard(self, news: News) -> None:
        match news:
            case Progressed():
                self._reports.hear(news)
            case ServerStarted() | ToolsHeld() | ListChanged(what="tools"):
                self._tell(ToolsListChanged(), mcp_types.ToolListChangedNotification())
            case ListChanged(what="resources"):
                self._tell(ResourcesListChanged(), mcp_types.ResourceListChangedNotification())
            case ListChanged(what="prompts"):
                self._tell(PromptsListChanged(), mcp_types.PromptListChangedNotification())
            case ResourceChanged():
                changed = mcp_types.ResourceUpdatedNotificationParams(uri=news.uri)
                self._tell(ResourceUpdated(news.uri), mcp_types.ResourceUpdatedNotification(params=changed))
            case _:
                pass

    def _tell(self, event: ServerEvent, notification: Any) -> None:
        async def telling() -> None:
            await self._bus.publish(event)
            for key, context in list(self._listeners.items()):
                try:
                    await context.session.send_notification(notification)
                except Exception:  # the client is gone, and how it left does not matter
                    self._listeners.pop(key, None)

        task = asyncio.get_running_loop().create_task(telling())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _remember(self, context: Context) -> None:
        """Clients of the older era are told of changes unasked; one context a connection is kept for that."""
        if context.protocol_version < "2026" and context.session.client_params is not None:
            self._listeners[id(context.session.client_params)] = context


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
