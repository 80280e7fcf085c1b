"""Notifications of one server, and the rate limit on them.

A legacy server sends notifications on its own: about a resource after a subscribe request, and log messages from the
requested level on. A server with the 2026-07 protocol sends them only on streams that the client opens: one for changed
lists, one for each resource.
"""

import asyncio
import contextlib
from typing import Any

import mcp_types
import msgspec
from mcp.client.client import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError

from holdfast.core import Clock
from holdfast.core.errors import HoldfastError, ToolFailed
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.contract import ListChanged, Listener, Logged, ResourceChanged, is_legacy

MAX_LOG_BYTES = 64 << 10
START_SECONDS = 2.0
"""How long a server may take to accept the subscriptions when it starts."""


class RateLimiter:
    """A token bucket. Messages over the limit are dropped and counted, never queued."""

    def __init__(self, clock: Clock, *, burst: int = 256, per_second: float = 64.0) -> None:
        self._clock = clock
        self._burst = burst
        self._per_second = per_second
        self._tokens = float(burst)
        self._updated_at = clock.monotonic()
        self.dropped = 0

    def take(self) -> bool:
        """Whether one more message may pass."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._updated_at) * self._per_second)
        self._updated_at = now
        if self._tokens < 1:
            self.dropped += 1
            return False
        self._tokens -= 1
        return True


class NotificationReceiver:
    """Receives the notifications of one running server and requests those that are wanted."""

    def __init__(
        self,
        server: str,
        *,
        listener: Listener,
        subscriptions: Subscriptions,
        rate_limiter: RateLimiter | None,
    ) -> None:
        """`rate_limiter` is None if the transport already limits the messages."""
        self._server = server
        self._notify = listener
        self._subscriptions = subscriptions
        self._rate_limiter = rate_limiter
        self._streams: dict[str, asyncio.Task[None]] = {}

    async def handle(self, message: object) -> None:
        """Handle a message of the library's message handler."""
        if self._rate_limiter is not None and not self._rate_limiter.take():
            return
        match message:
            case mcp_types.ToolListChangedNotification():
                self._notify(ListChanged(server=self._server, what="tools"))
            case mcp_types.ResourceListChangedNotification():
                self._notify(ListChanged(server=self._server, what="resources"))
            case mcp_types.PromptListChangedNotification():
                self._notify(ListChanged(server=self._server, what="prompts"))
            case mcp_types.ResourceUpdatedNotification():
                self._notify(ResourceChanged(server=self._server, uri=str(message.params.uri)))
            case mcp_types.LoggingMessageNotification():
                self._handle_log(message.params)
            case _:
                pass

    def _handle_log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            if len(msgspec.json.encode(params.data)) <= MAX_LOG_BYTES:
                logger = (params.logger or "")[:200]
                self._notify(Logged(server=self._server, level=params.level, data=params.data, logger=logger))

    async def start(self, client: Client) -> None:
        """Renew every subscription. A server that refuses one, or does not answer in time, is used without it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                await self._open_list_stream(client)
                await self.set_log_level(client)
                for uri in tuple(self._subscriptions.resources):
                    with contextlib.suppress(HoldfastError, MCPError):
                        await self.subscribe(client, uri)

    async def subscribe(self, client: Client, uri: str) -> None:
        """Request notifications about a resource. Raises ToolFailed and MCPError."""
        if not is_legacy(client.protocol_version):
            if uri not in self._streams:
                await self._open_stream(uri, client, resource_subscriptions=[uri])
            return
        params = mcp_types.SubscribeRequestParams(uri=uri)
        await client.session.send_request(mcp_types.SubscribeRequest(params=params), mcp_types.EmptyResult)

    async def unsubscribe(self, client: Client, uri: str) -> None:
        """Stop the notifications about a resource. Raises MCPError."""
        stream = self._streams.pop(uri, None)
        if stream is not None:
            stream.cancel()
            await asyncio.gather(stream, return_exceptions=True)
        elif is_legacy(client.protocol_version):
            params = mcp_types.UnsubscribeRequestParams(uri=uri)
            await client.session.send_request(
                mcp_types.UnsubscribeRequest(params=params), mcp_types.EmptyResult
            )

    async def set_log_level(self, client: Client) -> None:
        """Send the log level to a legacy server. With the 2026-07 protocol, each call carries its own level."""
        level = self._subscriptions.log_level
        if (
            level is None
            or not is_legacy(client.protocol_version)
            or client.server_capabilities.logging is None
        ):
            return
        request = mcp_types.SetLevelRequest(params=mcp_types.SetLevelRequestParams(level=level))
        with contextlib.suppress(MCPError):
            await client.session.send_request(request, mcp_types.EmptyResult)

    async def aclose(self) -> None:
        """Close every stream."""
        streams = tuple(self._streams.values())
        self._streams.clear()
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    async def _open_list_stream(self, client: Client) -> None:
        has = client.server_capabilities
        wanted = {
            f"{name}_list_changed": True
            for name in ("tools", "prompts", "resources")
            if (offered := getattr(has, name)) is not None and offered.list_changed
        }
        if wanted and not is_legacy(client.protocol_version):
            with contextlib.suppress(ToolFailed):
                await self._open_stream("", client, **wanted)

    async def _open_stream(self, key: str, client: Client, **wanted: Any) -> None:
        """Keep a stream open in its own task. Returns once the server agrees; raises ToolFailed."""
        agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def keep_open() -> None:
            try:
                async with client.listen(**wanted) as stream:
                    if key and key not in (stream.honored.resource_subscriptions or ()):
                        raise ToolFailed(f"server {self._server!r} does not report changes of {key!r}")
                    agreed.set_result(None)
                    async for _ in stream:
                        pass  # the library also passes each event to `handle`
            except (MCPError, SubscriptionLost, ToolFailed) as error:
                if not agreed.done():
                    agreed.set_exception(ToolFailed(str(error)[:500]))
            finally:
                self._streams.pop(key, None)
                if not agreed.done():
                    agreed.cancel()
            if key:
                # The stream ended and later events are lost, so subscribers must read the resource again.
                self._notify(ResourceChanged(server=self._server, uri=key))

        self._streams[key] = asyncio.create_task(keep_open(), name=f"mcp-listen-{self._server}")
        await agreed
