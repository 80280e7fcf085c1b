"""Subscribing: clients that want to hear when a resource changes. Each resource is asked for through the gate."""

from collections import Counter
from collections.abc import Mapping

import anyio
import mcp_types
from mcp.server.context import ServerRequestContext as Context
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from holdfast.core import Returned
from holdfast.mcp.client.resources import SUBSCRIBE
from holdfast.mcp.client.toolset import McpToolset
from holdfast.mcp.proxy.calls import CallHandler
from holdfast.mcp.proxy.catalog import ResourceCatalog
from holdfast.mcp.proxy.results import result_value
from holdfast.mcp.proxy.subscribers import Subscribers

MAX_STREAMS = 64
FORGET_SECONDS = 1.0


class SubscriptionHandlers:
    """The requests of both eras about changes."""

    def __init__(
        self,
        road: CallHandler,
        *,
        audience: Subscribers,
        catalogue: ResourceCatalog,
        servers: Mapping[str, McpToolset],
    ) -> None:
        self._road = road
        self._audience = audience
        self._catalogue = catalogue
        self._servers = servers
        self._listen = ListenHandler(audience, max_subscriptions=MAX_STREAMS)
        self._streamed: Counter[str] = Counter()
        """How many streams of the newer era want to hear of a resource."""

    async def subscribe(
        self, context: Context, params: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        """Older era: tell this connection of a resource."""
        uri = str(params.uri)
        server = await self._catalogue.server_of(uri)
        result_value(await self._road.settle_elsewhere(f"{server}.{SUBSCRIBE}", {"uri": uri}))
        self._audience.subscribe_to(context, uri)
        return mcp_types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: mcp_types.UnsubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        """Older era: tell it no more. That takes nothing from anybody, so nobody is asked."""
        self._audience.unsubscribe_from(context, str(params.uri))
        await self._forget(str(params.uri))
        return mcp_types.EmptyResult()

    async def listen(
        self, context: Context, params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        """Newer era: a stream of changes; a resource that the gate refuses is left out of what is agreed to."""
        wanted = params.notifications.resource_subscriptions or []
        agreed = [uri for uri in wanted if await self._may_hear(uri)]
        self._streamed.update(agreed)
        notifications = params.notifications.model_copy(update={"resource_subscriptions": agreed or None})
        try:
            return await self._listen(context, params.model_copy(update={"notifications": notifications}))
        finally:
            self._streamed.subtract(agreed)
            # The stream ends by cancellation; the server below is told all the same, if it listens.
            with anyio.move_on_after(FORGET_SECONDS, shield=True):
                for uri in agreed:
                    await self._forget(uri)

    async def _may_hear(self, uri: str) -> bool:
        try:
            server = await self._catalogue.server_of(uri)
        except MCPError:
            return False
        answer = await self._road.settle_elsewhere(f"{server}.{SUBSCRIBE}", {"uri": uri})
        return isinstance(answer, Returned)

    async def _forget(self, uri: str) -> None:
        """Tell the server, where nobody is left who wants to hear of a resource."""
        if self._streamed[uri] > 0 or self._audience.is_waited_for(uri):
            return
        del self._streamed[uri]
        try:
            server = await self._catalogue.server_of(uri)
        except MCPError:
            return
        await self._servers[server].forget_resource(uri)
