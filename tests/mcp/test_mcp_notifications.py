"""What servers tell unasked, through the proxy to the official client: both eras on both sides, a real server below."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.bench import Opener, spec_for
from tests.mcp.keeping import OpenKeeper, keeper_for

from holdfast.core import Verdict
from holdfast.core.events import CallIntended
from holdfast.mcp import McpToolset, Proxy, format_for_client

OLD, NEW = "legacy", "2026-07-28"
both_sides = pytest.mark.parametrize(
    ("server", "era"), [("--old", OLD), ("--old", NEW), ("", OLD), ("", NEW)]
)
both_servers = pytest.mark.parametrize("server", ["--old", ""])
URI = "note://board"


class Told:
    """What a client was told, and a way to wait for the next of it."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(self, message: object) -> None:
        """For the client's `message_handler`."""
        await self.messages.put(message)

    async def next(self, kind: type) -> Any:
        """The next of a kind; others are passed over."""
        async with asyncio.timeout(5):
            while not isinstance(message := await self.messages.get(), kind):
                pass
        return message


class Stand:
    """A proxy over the talkative server."""

    def __init__(self, keeper: OpenKeeper, toolset: McpToolset) -> None:
        self.keeper = keeper
        self.toolset = toolset
        self.proxy = Proxy(keeper, servers=[toolset])
        self.told = Told()

    def client(self, era: str, **options: Any) -> Client:
        """The official client of it."""
        return Client(self.proxy.create_server().server, mode=era, message_handler=self.told.hear, **options)

    def operations(self) -> list[str]:
        """What passed the gate."""
        recorded = self.keeper.journal.recorded
        return [each.event.call.operation for each in recorded if isinstance(each.event, CallIntended)]


Stander = Callable[..., Awaitable[Stand]]


@pytest.fixture
def stand(opened: Opener) -> Stander:
    async def set_up(server: str, **verdicts: Verdict) -> Stand:
        arguments = [server] if server else []
        bench = opened(spec_for("talkative", *arguments), format_result=format_for_client, has_extras=True)
        await bench.toolset.start()
        named: dict[str, Verdict] = {
            f"talkative.{verb.replace('_', '.')}": each for verb, each in verdicts.items()
        }
        return Stand(await keeper_for([bench.toolset], named), bench.toolset)

    return set_up


async def subscribed(client: Client) -> str:
    """What the server below believes to be wanted."""
    block = (await client.call_tool("talkative__wants", {})).content[0]
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def subscribe(client: Client, uri: str) -> None:
    """As a client of the older era does, which the library has a warning for."""
    params = mcp_types.SubscribeRequestParams(uri=uri)
    await client.session.send_request(mcp_types.SubscribeRequest(params=params), mcp_types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    """The same way back."""
    params = mcp_types.UnsubscribeRequestParams(uri=uri)
    await client.session.send_request(mcp_types.UnsubscribeRequest(params=params), mcp_types.EmptyResult)


@both_servers
async def test_an_old_client_hears_of_a_resource_while_it_is_subscribed(stand: Stander, server: str) -> None:
    it = await stand(server)
    async with it.client(OLD) as client:
        await client.list_tools()
        await subscribe(client, URI)
        assert await subscribed(client) == URI
        await client.call_tool("talkative__touch", {})
        changed = await it.told.next(mcp_types.ResourceUpdatedNotification)
        assert str(changed.params.uri) == URI
        await unsubscribe(client, URI)
        while await subscribed(client) != "nothing":
            pass
    assert it.operations()[0] == "talkative.resources.subscribe"


@both_servers
async def test_a_new_client_hears_of_a_resource_while_it_listens(stand: Stander, server: str) -> None:
    it = await stand(server)
    async with it.client(NEW) as client:
        async with client.listen(resource_subscriptions=[URI]) as changes:
            assert await subscribed(client) == URI
            await client.call_tool("talkative__touch", {})
            async with asyncio.timeout(5):
                assert getattr(await anext(aiter(changes)), "uri", "") == URI
        async with asyncio.timeout(5):
            while await subscribed(client) != "nothing":
                pass


@both_servers
async def test_a_resource_that_policy_denies_is_not_subscribed_to(stand: Stander, server: str) -> None:
    it = await stand(server, resources_subscribe="deny")
    async with it.client(OLD) as client:
        with pytest.raises(MCPError, match="DENIED"):
            await subscribe(client, URI)
    async with it.client(NEW) as client, client.listen(resource_subscriptions=[URI]) as changes:
        assert not changes.honored.resource_subscriptions
        assert await subscribed(client) == "nothing"


@both_servers
async def test_a_client_that_did_not_subscribe_hears_of_no_resource(stand: Stander, server: str) -> None:
    it = await stand(server)
    other = Told()
    create_server = it.proxy.create_server().server
    async with (
        Client(create_server, mode=OLD, message_handler=it.told.hear) as client,
        Client(create_server, mode=OLD, message_handler=other.hear) as bystander,
    ):
        await bystander.list_tools()
        await client.list_tools()
        await subscribe(client, URI)
        await client.call_tool("talkative__touch", {})
        await it.told.next(mcp_types.ResourceUpdatedNotification)
        await client.call_tool("talkative__grow", {})
        async with asyncio.timeout(5):
            assert isinstance(await other.messages.get(), mcp_types.ToolListChangedNotification)


@both_servers
async def test_a_subscription_outlives_the_process_of_its_server(stand: Stander, server: str) -> None:
    it = await stand(server)
    async with it.client(OLD) as client:
        await client.list_tools()
        await subscribe(client, URI)
        await it.toolset.close()
        assert await subscribed(client) == URI
        await client.call_tool("talkative__touch", {})
        await it.told.next(mcp_types.ResourceUpdatedNotification)


@both_servers
async def test_changes_are_announced_and_heard_over_http_too(stand: Stander, server: str) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    it = await stand(server)
    async with it.proxy.serving_http() as (address, token):
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        transport = streamable_http_client(address, http_client=http)
        async with http, Client(transport, mode=OLD, message_handler=it.told.hear) as client:
            offered = client.server_capabilities
            for each in (offered.tools, offered.resources, offered.prompts):
                assert each is not None
                assert each.list_changed
            await client.list_tools()
            await subscribe(client, URI)
            while it.told.messages.empty():  # what is told before the client listens is lost
                await client.call_tool("talkative__touch", {})
            await it.told.next(mcp_types.ResourceUpdatedNotification)


@both_sides
async def test_a_server_that_changes_its_tools_is_heard(stand: Stander, server: str, era: str) -> None:
    it = await stand(server)
    async with it.client(era) as client:
        await client.list_tools()
        if era == OLD:
            await client.call_tool("talkative__grow", {})
            await it.told.next(mcp_types.ToolListChangedNotification)
            return
        async with client.listen(tools_list_changed=True) as changes, asyncio.timeout(5):
            await client.call_tool("talkative__grow", {})
            assert type(await anext(aiter(changes))).__name__ == "ToolsListChanged"


@both_sides
async def test_words_are_completed_through_the_gate(stand: Stander, server: str, era: str) -> None:
    it = await stand(server)
    async with it.client(era) as client:
        prompt = mcp_types.PromptReference(name="talkative__greet")
        told = await client.complete(prompt, {"name": "who", "value": "A"}, {"tone": "kind"})
        template = mcp_types.ResourceTemplateReference(uri="page://{name}")
        paged = await client.complete(template, {"name": "name", "value": "B"})
    assert told.completion.values == ["greet/who/A", "kind"]
    assert paged.completion.values == ["page://{name}/name/B"]
    assert it.operations() == ["talkative.completion.complete"] * 2


@both_sides
async def test_a_completion_that_policy_denies_is_not_made(stand: Stander, server: str, era: str) -> None:
    it = await stand(server, completion_complete="deny")
    async with it.client(era) as client:
        with pytest.raises(MCPError, match="DENIED"):
            await client.complete(
                mcp_types.PromptReference(name="talkative__greet"), {"name": "who", "value": "A"}
            )


@both_servers
async def test_an_old_client_hears_the_log_from_the_level_it_set(stand: Stander, server: str) -> None:
    it = await stand(server)
    async with it.client(OLD) as client:
        await client.list_tools()
        level = mcp_types.SetLevelRequestParams(level="warning")
        await client.session.send_request(mcp_types.SetLevelRequest(params=level), mcp_types.EmptyResult)
        await client.call_tool("talkative__say", {"level": "info", "text": "small talk"})
        await client.call_tool("talkative__say", {"level": "error", "text": "it burns"})
        said = await it.told.next(mcp_types.LoggingMessageNotification)
    assert (said.params.level, said.params.data, said.params.logger) == (
        "error",
        "it burns",
        "talkative.desk",
    )


@both_servers
async def test_a_new_client_hears_the_log_of_a_call_that_asked_for_it(stand: Stander, server: str) -> None:
    it = await stand(server)
    async with it.client(NEW) as client:
        await client.call_tool("talkative__say", {"level": "error", "text": "unheard"})
        opted: Any = {"io.modelcontextprotocol/logLevel": "warning"}
        for level, text in (("info", "small talk"), ("error", "it burns")):
            await client.call_tool("talkative__say", {"level": level, "text": text}, meta=opted)
        said = await it.told.next(mcp_types.LoggingMessageNotification)
    assert (said.params.level, said.params.data) == ("error", "it burns")


async def test_a_log_message_of_any_size_costs_nothing(stand: Stander) -> None:
    it = await stand("--old")
    async with it.client(OLD) as client:
        await client.list_tools()
        await client.call_tool("talkative__say", {"level": "error", "text": "x" * (65 << 10)})
        await client.call_tool("talkative__say", {"level": "error", "text": "short"})
        said = await it.told.next(mcp_types.LoggingMessageNotification)
    assert said.params.data == "short"
