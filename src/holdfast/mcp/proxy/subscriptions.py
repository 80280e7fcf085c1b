"""The handlers of subscription requests. Each subscription to a resource is a call that passes the gate."""

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
UNSUBSCRIBE_SECONDS = 1.0


class SubscriptionHandlers:
    """The subscription requests of the legacy and the 2026-07 protocol."""

    def __init__(
        self,
        calls: CallHandler,
        *,
        subscribers: Subscribers,
        catalog: ResourceCatalog,
        servers: Mapping[str, McpToolset],
    ) -> None:
        self._calls = calls
        self._subscribers = subscribers
        self._catalog = catalog
        self._servers = servers
        self._listen = ListenHandler(subscribers, max_subscriptions=MAX_STREAMS)
        self._streamed: Counter[str] = Counter()
        """How many open streams include a resource (2026-07 protocol)."""

    async def subscribe(
        self, context: Context, params: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        """Legacy: notify this connection about a resource."""
        uri = str(params.uri)
        server = await self._catalog.server_of(uri)
        result_value(await self._calls.handle_without_elicitation(f"{server}.{SUBSCRIBE}", {"uri": uri}))
        self._subscribers.subscribe_to(context, uri)
        return mcp_types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: mcp_types.UnsubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        """Legacy: stop notifying this connection. This needs no permission."""
        self._subscribers.unsubscribe_from(context, str(params.uri))
        await self._unsubscribe_unused(str(params.uri))
        return mcp_types.EmptyResult()

    async def listen(
        self, context: Context, params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        """2026-07: serve a stream of changes. A resource that the gate refuses is left out of what is honored."""
        wanted = params.notifications.resource_subscriptions or []
        agreed = [uri for uri in wanted if await self._is_allowed(uri)]
        self._streamed.update(agreed)
        notifications = params.notifications.model_copy(update={"resource_subscriptions": agreed or None})
        try:
            return await self._listen(context, params.model_copy(update={"notifications": notifications}))
        finally:
            self._streamed.subtract(agreed)
            # The stream ends by cancellation, and the server must still be unsubscribed.
            with anyio.move_on_after(UNSUBSCRIBE_SECONDS, shield=True):
                for uri in agreed:
                    await self._unsubscribe_unused(uri)

    async def _is_allowed(self, uri: str) -> bool:
        try:
            server = await self._catalog.server_of(uri)
        except MCPError:
            return False
        answer = await self._calls.handle_without_elicitation(f"{server}.{SUBSCRIBE}", {"uri": uri})
        return isinstance(answer, Returned)

    async def _unsubscribe_unused(self, uri: str) -> None:
        """Unsubscribe from a resource at its server if no client is left."""
        if self._streamed[uri] > 0 or self._subscribers.is_subscribed(uri):
            return
        del self._streamed[uri]
        try:
            server = await self._catalog.server_of(uri)
        except MCPError:
            return
        await self._servers[server].unsubscribe(uri)
