"""A server that sends notifications: changed resources, changed lists, log messages. With `--legacy`, only the legacy protocol."""

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types
from mcp.server.context import ServerRequestContext as Context
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.message import SessionMessage

IS_LEGACY = "--legacy" in sys.argv
URI = "note://board"
LOG_LEVELS = ["debug", "info", "notice", "warning", "error"]

bus = InMemorySubscriptionBus()
subscribed: set[str] = set()
level = ["debug"]
tools = ["change_resource", "log", "add_tool", "subscriptions"]


async def list_tools(context: Context, params: object) -> mcp_types.ListToolsResult:
    schema = {"type": "object", "properties": {"level": {"type": "string"}, "text": {"type": "string"}}}
    return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name=name, input_schema=schema) for name in tools])


async def call_tool(context: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
    given = params.arguments or {}
    match params.name:
        case "change_resource" if IS_LEGACY:
            for uri in subscribed:
                await context.session.send_resource_updated(uri)
        case "change_resource":
            await bus.publish(ResourceUpdated(URI))
        case "add_tool" if IS_LEGACY:
            tools.append("added")
            await context.session.send_notification(mcp_types.ToolListChangedNotification())
        case "add_tool":
            tools.append("added")
            await bus.publish(ToolsListChanged())
        case "log" if not IS_LEGACY or LOG_LEVELS.index(given["level"]) >= LOG_LEVELS.index(level[0]):
            message = mcp_types.LoggingMessageNotificationParams(
                level=given["level"], data=given["text"], logger="main"
            )
            wanted = (context.meta or {}).get("io.modelcontextprotocol/logLevel")
            if IS_LEGACY or wanted is not None:
                await context.session.send_notification(
                    mcp_types.LoggingMessageNotification(params=message),
                    related_request_id=context.request_id,
                )
        case _:
            pass
    wanted_resources = ",".join(sorted(subscribed)) or "nothing"
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=wanted_resources)])


async def list_resources(context: Context, params: object) -> mcp_types.ListResourcesResult:
    return mcp_types.ListResourcesResult(resources=[mcp_types.Resource(name="board", uri=URI)])


async def list_templates(context: Context, params: object) -> mcp_types.ListResourceTemplatesResult:
    template = mcp_types.ResourceTemplate(name="page", uri_template="page://{name}")
    return mcp_types.ListResourceTemplatesResult(resource_templates=[template])


async def list_prompts(context: Context, params: object) -> mcp_types.ListPromptsResult:
    return mcp_types.ListPromptsResult(prompts=[mcp_types.Prompt(name="greet")])


async def complete(context: Context, params: mcp_types.CompleteRequestParams) -> mcp_types.CompleteResult:
    named = params.ref.name if isinstance(params.ref, mcp_types.PromptReference) else params.ref.uri
    seen = (params.context.arguments or {}) if params.context else {}
    values = [f"{named}/{params.argument.name}/{params.argument.value}", *seen.values()]
    return mcp_types.CompleteResult(completion=mcp_types.Completion(values=values, total=len(values)))


async def subscribe(context: Context, params: mcp_types.SubscribeRequestParams) -> mcp_types.EmptyResult:
    subscribed.add(str(params.uri))
    return mcp_types.EmptyResult()


async def unsubscribe(context: Context, params: mcp_types.UnsubscribeRequestParams) -> mcp_types.EmptyResult:
    subscribed.discard(str(params.uri))
    return mcp_types.EmptyResult()


async def set_level(context: Context, params: mcp_types.SetLevelRequestParams) -> mcp_types.EmptyResult:
    level[0] = params.level
    return mcp_types.EmptyResult()


class RecordingListenHandler(ListenHandler):
    """Remembers the subscriptions of its open streams."""

    async def __call__(self, ctx: Context, params: mcp_types.SubscriptionsListenRequestParams) -> Any:
        wanted = params.notifications.resource_subscriptions or []
        subscribed.update(wanted)
        try:
            return await super().__call__(ctx, params)
        finally:
            subscribed.difference_update(wanted)


@contextlib.asynccontextmanager
async def streams() -> AsyncIterator[Any]:
    """Standard input and output. A legacy server does not know `server/discover`."""
    async with stdio_server() as (incoming, outgoing):
        if not IS_LEGACY:
            yield incoming, outgoing
            return
        known, filtered = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def reject_discover() -> None:
            async with known:
                async for item in incoming:
                    message = item.message if isinstance(item, SessionMessage) else None
                    if isinstance(message, mcp_types.JSONRPCRequest) and message.method == "server/discover":
                        error = mcp_types.ErrorData(
                            code=mcp_types.METHOD_NOT_FOUND, message="Method not found"
                        )
                        answer = mcp_types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
                        await outgoing.send(SessionMessage(answer))
                    else:
                        await known.send(item)

        async with anyio.create_task_group() as group:
            group.start_soon(reject_discover)
            yield filtered, outgoing


async def main() -> None:
    server: Server[Any] = Server(
        "notifying",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_list_prompts=list_prompts,
        on_completion=complete,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=None if IS_LEGACY else RecordingListenHandler(bus),
    )
    if IS_LEGACY:
        server.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, set_level)
    async with streams() as (incoming, outgoing):
        changes = NotificationOptions(tools_changed=True)
        await server.run(incoming, outgoing, server.create_initialization_options(changes))


anyio.run(main)
