"""Listening: what a server tells unasked, in the way of its era.

The older era tells by itself, of a resource once it was subscribed to, and of its log from a level on that was set. The
newer one tells only on streams that were asked for: one for lists that change, one for each resource.

A ration: how much a server may say without being asked.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import mcp_types
import msgspec
from mcp.client.client import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError

from holdfast.core import Clock
from holdfast.core.errors import HoldfastError, ToolFailed
from holdfast.mcp.client.subscriptions import Subscriptions
from holdfast.mcp.contract import ListChanged, Logged, ResourceChanged, ServerNotification


class RateLimiter:
    """A bucket that fills with time. What does not fit is dropped and counted, never queued."""

    def __init__(self, clock: Clock, *, burst: int = 256, per_second: float = 64.0) -> None:
        self._clock = clock
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst)
        self._at = clock.monotonic()
        self.dropped = 0

    def take(self) -> bool:
        """Whether one more may pass."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True


MAX_LOG_BYTES = 64 << 10
BEGIN_SECONDS = 2.0
NEWER_ERA = "2026"
Tell = Callable[[ServerNotification], None]


class Listening:
    """The news of one running server, and what it is asked to tell."""

    def __init__(self, server: str, *, tell: Tell, wishes: Subscriptions, ration: RateLimiter | None) -> None:
        """`ration` bounds what is heard here, where the transport does not do it."""
        self._server = server
        self._tell = tell
        self._wishes = wishes
        self._ration = ration
        self._streams: dict[str, asyncio.Task[None]] = {}

    async def hear(self, message: object) -> None:
        """Take whatever the library was told."""
        if self._ration is not None and not self._ration.take():
            return
        match message:
            case mcp_types.ToolListChangedNotification():
                self._tell(ListChanged(server=self._server, what="tools"))
            case mcp_types.ResourceListChangedNotification():
                self._tell(ListChanged(server=self._server, what="resources"))
            case mcp_types.PromptListChangedNotification():
                self._tell(ListChanged(server=self._server, what="prompts"))
            case mcp_types.ResourceUpdatedNotification():
                self._tell(ResourceChanged(server=self._server, uri=str(message.params.uri)))
            case mcp_types.LoggingMessageNotification():
                self._hear_log(message.params)
            case _:
                pass

    def _hear_log(self, said: mcp_types.LoggingMessageNotificationParams) -> None:
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            if len(msgspec.json.encode(said.data)) <= MAX_LOG_BYTES:
                logger = (said.logger or "")[:200]
                self._tell(Logged(server=self._server, level=said.level, data=said.data, logger=logger))

    async def begin(self, client: Client) -> None:
        """Make every wish that stands; one that the server refuses or leaves open is no reason not to use it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_SECONDS):
                await self._listen_for_lists(client)
                await self.set_log_level(client)
                for uri in tuple(self._wishes.resources):
                    with contextlib.suppress(HoldfastError, MCPError):
                        await self.subscribe(client, uri)

    async def subscribe(self, client: Client, uri: str) -> None:
        """Be told of a resource's changes. Raises ToolFailed and MCPError."""
        if client.protocol_version >= NEWER_ERA:
            if uri not in self._streams:
                await self._open(uri, client, resource_subscriptions=[uri])
            return
        params = mcp_types.SubscribeRequestParams(uri=uri)
        await client.session.send_request(mcp_types.SubscribeRequest(params=params), mcp_types.EmptyResult)

    async def unsubscribe(self, client: Client, uri: str) -> None:
        """Be told no more. Raises MCPError."""
        stream = self._streams.pop(uri, None)
        if stream is not None:
            stream.cancel()
            await asyncio.gather(stream, return_exceptions=True)
        elif client.protocol_version < NEWER_ERA:
            params = mcp_types.UnsubscribeRequestParams(uri=uri)
            await client.session.send_request(
                mcp_types.UnsubscribeRequest(params=params), mcp_types.EmptyResult
            )

    async def set_log_level(self, client: Client) -> None:
        """Ask for log messages from the wished level on; in the newer era every call asks for itself."""
        level = self._wishes.log_level
        if (
            level is None
            or client.protocol_version >= NEWER_ERA
            or client.server_capabilities.logging is None
        ):
            return
        request = mcp_types.SetLevelRequest(params=mcp_types.SetLevelRequestParams(level=level))
        with contextlib.suppress(MCPError):
            await client.session.send_request(request, mcp_types.EmptyResult)

    async def aclose(self) -> None:
        """Let go of every stream."""
        streams = tuple(self._streams.values())
        self._streams.clear()
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    async def _listen_for_lists(self, client: Client) -> None:
        has = client.server_capabilities
        wanted = {
            f"{name}_list_changed": True
            for name in ("tools", "prompts", "resources")
            if (offered := getattr(has, name)) is not None and offered.list_changed
        }
        if wanted and client.protocol_version >= NEWER_ERA:
            with contextlib.suppress(ToolFailed):
                await self._open("", client, **wanted)

    async def _open(self, key: str, client: Client, **wanted: Any) -> None:
        """Hold a stream open in a task of its own. Returns once the server has agreed; raises ToolFailed."""
        agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            try:
                async with client.listen(**wanted) as stream:
                    if key and key not in (stream.honored.resource_subscriptions or ()):
                        raise ToolFailed(f"server {self._server!r} does not tell of {key!r}")
                    agreed.set_result(None)
                    async for _ in stream:
                        pass  # `hear` is told each of them too
            except (MCPError, SubscriptionLost, ToolFailed) as error:
                if not agreed.done():
                    agreed.set_exception(ToolFailed(str(error)[:500]))
            finally:
                self._streams.pop(key, None)
                if not agreed.done():
                    agreed.cancel()
            if key:
                # The stream is over and what it would have told is lost: whoever wanted it had better look.
                self._tell(ResourceChanged(server=self._server, uri=key))

        self._streams[key] = asyncio.create_task(hold(), name=f"mcp-listen-{self._server}")
        await agreed
