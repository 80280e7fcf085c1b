"""Notifications of a real server, through the proxy to the official client, with both protocols on both sides."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.gate_client import RecordedGateClient, open_gate_client
from tests.mcp.toolset_harness import OpenToolset, spec_for

from holdfast.core import Verdict
from holdfast.core.events import CallIntended
from holdfast.mcp import McpToolset, Proxy, format_for_client

LEGACY, CURRENT = "legacy", "2026-07-28"
both_sides = pytest.mark.parametrize(
    ("server", "protocol"), [("--legacy", LEGACY), ("--legacy", CURRENT), ("", LEGACY), ("", CURRENT)]
)
both_servers = pytest.mark.parametrize("server", ["--legacy", ""])
URI = "note://board"


class ReceivedMessages:
    """The messages that a client received, and a way to wait for the next one."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()

    async def handle(self, message: object) -> None:
        """For the client's `message_handler`."""
        await self.messages.put(message)

    async def next(self, kind: type) -> Any:
        """Wait for the next message of a kind and skip others."""
        async with asyncio.timeout(60):
            while not isinstance(message := await self.messages.get(), kind):
                pass
        return message


class ProxyHarness:
    """A proxy in front of the notifying server."""

    def __init__(self, gate: RecordedGateClient, toolset: McpToolset) -> None:
        self.gate = gate
        self.toolset = toolset
        self.proxy = Proxy(gate, servers=[toolset])
        self.received = ReceivedMessages()

    def client(self, protocol: str, **options: Any) -> Client:
        """The official client, connected to the proxy."""
        return Client(
            self.proxy.create_server().server, mode=protocol, message_handler=self.received.handle, **options
        )

    def operations(self) -> list[str]:
        """The operations that passed the gate."""
        recorded = self.gate.journal.recorded
        return [each.event.call.operation for each in recorded if isinstance(each.event, CallIntended)]


OpenProxy = Callable[..., Awaitable[ProxyHarness]]


@pytest.fixture
def open_proxy(open_toolset: OpenToolset) -> OpenProxy:
    async def open_one(server: str, **verdicts: Verdict) -> ProxyHarness:
        arguments = [server] if server else []
        harness = open_toolset(
            spec_for("notifying", *arguments), format_result=format_for_client, has_extras=True
        )
        await harness.toolset.start()
        named: dict[str, Verdict] = {
            f"notifying.{verb.replace('_', '.')}": each for verb, each in verdicts.items()
        }
        return ProxyHarness(await open_gate_client([harness.toolset], named), harness.toolset)

    return open_one


async def subscribed(client: Client) -> str:
    """The subscriptions that the server behind the proxy has."""
    block = (await client.call_tool("notifying__subscriptions", {})).content[0]
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def subscribe(client: Client, uri: str) -> None:
    """Subscribe like a legacy client; the library's own method warns about it."""
    params = mcp_types.SubscribeRequestParams(uri=uri)
    await client.session.send_request(mcp_types.SubscribeRequest(params=params), mcp_types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    """Unsubscribe like a legacy client."""
    params = mcp_types.UnsubscribeRequestParams(uri=uri)
    await client.session.send_request(mcp_types.UnsubscribeRequest(params=params), mcp_types.EmptyResult)


@both_servers
async def test_a_legacy_client_is_notified_of_a_resource_while_it_is_subscribed(
    open_proxy: OpenProxy, server: str
) -> None:
    harness = await open_proxy(server)
    async with harness.client(LEGACY) as client:
        await client.list_tools()
        await subscribe(client, URI)
        assert await subscribed(client) == URI
        await client.call_tool("notifying__change_resource", {})
        changed = await harness.received.next(mcp_types.ResourceUpdatedNotification)
        assert str(changed.params.uri) == URI
        await unsubscribe(client, URI)
        while await subscribed(client) != "nothing":
            pass
    assert harness.operations()[0] == "notifying.resources.subscribe"


@both_servers
async def test_a_current_client_is_notified_of_a_resource_while_it_listens(
    open_proxy: OpenProxy, server: str
) -> None:
    harness = await open_proxy(server)
    async with harness.client(CURRENT) as client:
        async with client.listen(resource_subscriptions=[URI]) as changes:
            assert await subscribed(client) == URI
            await client.call_tool("notifying__change_resource", {})
            async with asyncio.timeout(60):
                assert getattr(await anext(aiter(changes)), "uri", "") == URI
        async with asyncio.timeout(60):
            while await subscribed(client) != "nothing":
                pass


@both_servers
async def test_a_denied_resource_is_not_subscribed_to(open_proxy: OpenProxy, server: str) -> None:
    harness = await open_proxy(server, resources_subscribe="deny")
    async with harness.client(LEGACY) as client:
        with pytest.raises(MCPError, match="DENIED"):
            await subscribe(client, URI)
    async with harness.client(CURRENT) as client, client.listen(resource_subscriptions=[URI]) as changes:
        assert not changes.honored.resource_subscriptions
        assert await subscribed(client) == "nothing"


@both_servers
async def test_a_client_without_a_subscription_is_not_notified(open_proxy: OpenProxy, server: str) -> None:
    harness = await open_proxy(server)
    other = ReceivedMessages()
    protocol_server = harness.proxy.create_server().server
    async with (
        Client(protocol_server, mode=LEGACY, message_handler=harness.received.handle) as client,
        Client(protocol_server, mode=LEGACY, message_handler=other.handle) as bystander,
    ):
        await bystander.list_tools()
        await client.list_tools()
        await subscribe(client, URI)
        await client.call_tool("notifying__change_resource", {})
        await harness.received.next(mcp_types.ResourceUpdatedNotification)
        await client.call_tool("notifying__add_tool", {})
        async with asyncio.timeout(60):
            assert isinstance(await other.messages.get(), mcp_types.ToolListChangedNotification)


@both_servers
async def test_a_subscription_survives_a_restart_of_the_server(open_proxy: OpenProxy, server: str) -> None:
    harness = await open_proxy(server)
    async with harness.client(LEGACY) as client:
        await client.list_tools()
        await subscribe(client, URI)
        await harness.toolset.close()
        assert await subscribed(client) == URI
        await client.call_tool("notifying__change_resource", {})
        await harness.received.next(mcp_types.ResourceUpdatedNotification)


@both_servers
async def test_changes_are_announced_and_sent_over_http(open_proxy: OpenProxy, server: str) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    harness = await open_proxy(server)
    async with harness.proxy.serving_http() as (address, token):
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        transport = streamable_http_client(address, http_client=http)
        async with http, Client(transport, mode=LEGACY, message_handler=harness.received.handle) as client:
            offered = client.server_capabilities
            for each in (offered.tools, offered.resources, offered.prompts):
                assert each is not None
                assert each.list_changed
            await client.list_tools()
            await subscribe(client, URI)
            while harness.received.messages.empty():  # events before the client listens are lost
                await client.call_tool("notifying__change_resource", {})
            await harness.received.next(mcp_types.ResourceUpdatedNotification)


@both_sides
async def test_a_changed_tool_list_is_announced(open_proxy: OpenProxy, server: str, protocol: str) -> None:
    harness = await open_proxy(server)
    async with harness.client(protocol) as client:
        await client.list_tools()
        if protocol == LEGACY:
            await client.call_tool("notifying__add_tool", {})
            await harness.received.next(mcp_types.ToolListChangedNotification)
            return
        async with client.listen(tools_list_changed=True) as changes, asyncio.timeout(60):
            await client.call_tool("notifying__add_tool", {})
            assert type(await anext(aiter(changes))).__name__ == "ToolsListChanged"


@both_sides
async def test_completions_pass_the_gate(open_proxy: OpenProxy, server: str, protocol: str) -> None:
    harness = await open_proxy(server)
    async with harness.client(protocol) as client:
        prompt = mcp_types.PromptReference(name="notifying__greet")
        prompted = await client.complete(prompt, {"name": "who", "value": "A"}, {"tone": "kind"})
        template = mcp_types.ResourceTemplateReference(uri="page://{name}")
        paged = await client.complete(template, {"name": "name", "value": "B"})
    assert prompted.completion.values == ["greet/who/A", "kind"]
    assert paged.completion.values == ["page://{name}/name/B"]
    assert harness.operations() == ["notifying.completion.complete"] * 2


@both_sides
async def test_a_denied_completion_is_refused(open_proxy: OpenProxy, server: str, protocol: str) -> None:
    harness = await open_proxy(server, completion_complete="deny")
    async with harness.client(protocol) as client:
        with pytest.raises(MCPError, match="DENIED"):
            await client.complete(
                mcp_types.PromptReference(name="notifying__greet"), {"name": "who", "value": "A"}
            )


@both_servers
async def test_a_legacy_client_receives_log_messages_from_the_level_it_set(
    open_proxy: OpenProxy, server: str
) -> None:
    harness = await open_proxy(server)
    async with harness.client(LEGACY) as client:
        await client.list_tools()
        level = mcp_types.SetLevelRequestParams(level="warning")
        await client.session.send_request(mcp_types.SetLevelRequest(params=level), mcp_types.EmptyResult)
        await client.call_tool("notifying__log", {"level": "info", "text": "minor"})
        await client.call_tool("notifying__log", {"level": "error", "text": "major"})
        logged = await harness.received.next(mcp_types.LoggingMessageNotification)
    assert (logged.params.level, logged.params.data, logged.params.logger) == (
        "error",
        "major",
        "notifying.main",
    )


@both_servers
async def test_a_current_client_receives_the_log_messages_that_a_call_requested(
    open_proxy: OpenProxy, server: str
) -> None:
    harness = await open_proxy(server)
    async with harness.client(CURRENT) as client:
        await client.call_tool("notifying__log", {"level": "error", "text": "not requested"})
        opted: Any = {"io.modelcontextprotocol/logLevel": "warning"}
        for level, text in (("info", "minor"), ("error", "major")):
            await client.call_tool("notifying__log", {"level": level, "text": text}, meta=opted)
        logged = await harness.received.next(mcp_types.LoggingMessageNotification)
    assert (logged.params.level, logged.params.data) == ("error", "major")


async def test_an_oversized_log_message_is_dropped(open_proxy: OpenProxy) -> None:
    harness = await open_proxy("--legacy")
    async with harness.client(LEGACY) as client:
        await client.list_tools()
        await client.call_tool("notifying__log", {"level": "error", "text": "x" * (65 << 10)})
        await client.call_tool("notifying__log", {"level": "error", "text": "short"})
        logged = await harness.received.next(mcp_types.LoggingMessageNotification)
    assert logged.params.data == "short"
