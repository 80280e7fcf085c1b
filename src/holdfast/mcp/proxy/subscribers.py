"""The clients of the proxy that receive notifications, and the bounded queue of messages to each.

A legacy client receives notifications unsolicited on its connection. A client with the 2026-07 protocol receives changes
on streams that it opened, and log messages during a call that requested them. Nothing here waits for a client.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import mcp_types
from mcp.server.context import ServerRequestContext as Context
from mcp.shared.subscriptions import ResourceUpdated, ServerEvent, event_to_notification

from holdfast.mcp.contract import LOG_LEVELS, Logged, LogLevel, is_legacy

_Item = TypeVar("_Item")

MAX_QUEUED = 64
"""How far a slow client may fall behind. Then the oldest message is dropped, because later ones supersede it."""
MAX_LEGACY_CLIENTS = 256
"""How many legacy connections are remembered. Over HTTP, a client may leave without saying so."""
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
EventListener = Callable[[ServerEvent], None]


class SendQueue(Generic[_Item]):
    """Sends messages in order. A task exists only while there is something to send."""

    def __init__(self, send: Callable[[_Item], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: deque[_Item] = deque(maxlen=MAX_QUEUED)
        self._sending: asyncio.Task[None] | None = None
        self.is_broken = False
        """Whether sending failed, which means that the client is gone."""

    def put(self, item: _Item) -> None:
        """Queue a message. Must be called from the event loop; never blocks."""
        if self.is_broken:
            return
        self._waiting.append(item)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def drain(self) -> None:
        """Wait until everything is sent."""
        if self._sending is not None:
            await self._sending

    def close(self) -> None:
        """Drop the queued messages."""
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._waiting.popleft())
        except Exception:
            self.is_broken = True
            self._waiting.clear()


class Subscribers:
    """Which client receives which notification."""

    def __init__(self) -> None:
        self._legacy_clients: dict[int, _LegacyClient] = {}
        self._streams: dict[object, EventListener] = {}
        self._calls: dict[object, _LogStream] = {}

    def add_client(self, context: Context) -> None:
        """Send later notifications to this client, if it is a legacy client."""
        if is_legacy(context.protocol_version) and context.session.client_params is not None:
            self._client_of(context)

    def set_log_level(self, context: Context, level: LogLevel) -> None:
        """Send this client only log messages of this level or above."""
        self._client_of(context).level = level

    def subscribe_to(self, context: Context, uri: str) -> None:
        """Notify this client when the resource changes."""
        self._client_of(context).resources.add(uri)

    def unsubscribe_from(self, context: Context, uri: str) -> None:
        """Stop notifying this client about the resource."""
        self._client_of(context).resources.discard(uri)

    def is_subscribed(self, uri: str) -> bool:
        """Whether a legacy client is subscribed to a resource."""
        return any(uri in client.resources for client in self._legacy_clients.values())

    @contextmanager
    def log_stream(self, context: Context, server: str) -> Iterator[LogLevel | None]:
        """Send the server's log messages to a client while its call runs, if it asked for them. Yields the level."""
        wanted = (context.meta or {}).get(_LOG_LEVEL)
        if is_legacy(context.protocol_version) or wanted not in LOG_LEVELS:
            yield None
            return
        key, level = object(), wanted
        log_stream = self._calls[key] = _LogStream(context, server, level)
        try:
            yield level
        finally:
            del self._calls[key]
            log_stream.queue.close()

    # -- the library's subscription bus

    async def publish(self, event: ServerEvent) -> None:
        """Publish a change."""
        self.notify(event)

    def subscribe(self, listener: EventListener) -> Callable[[], None]:
        """Pass every change to a stream. Returns the function that ends the subscription."""
        key = object()
        self._streams[key] = listener
        return lambda: self._streams.pop(key, None) and None

    # -- notifications

    def notify(self, event: ServerEvent) -> None:
        """Send a change to the streams and to the legacy clients that want it."""
        for listener in tuple(self._streams.values()):
            listener(event)
        notification = event_to_notification(event, {})
        for client in self._connected_clients():
            if not isinstance(event, ResourceUpdated) or event.uri in client.resources:
                client.queue.put(notification)

    def log(self, logged: Logged) -> None:
        """Send a log message to the clients that want its level."""
        logger = f"{logged.server}.{logged.logger}" if logged.logger else logged.server
        params = mcp_types.LoggingMessageNotificationParams(
            level=logged.level, data=logged.data, logger=logger
        )
        notification = mcp_types.LoggingMessageNotification(params=params)
        rank = LOG_LEVELS.index(logged.level)
        for client in self._connected_clients():
            if rank >= LOG_LEVELS.index(client.level):
                client.queue.put(notification)
        for log_stream in self._calls.values():
            if log_stream.server == logged.server and rank >= LOG_LEVELS.index(log_stream.level):
                log_stream.queue.put(notification)

    def _client_of(self, context: Context) -> "_LegacyClient":
        key = id(context.session.client_params)
        if key not in self._legacy_clients:
            if len(self._legacy_clients) >= MAX_LEGACY_CLIENTS:
                self._legacy_clients.pop(next(iter(self._legacy_clients))).queue.close()
            self._legacy_clients[key] = _LegacyClient(context)
        return self._legacy_clients[key]

    def _connected_clients(self) -> "list[_LegacyClient]":
        self._legacy_clients = {
            key: each for key, each in self._legacy_clients.items() if not each.queue.is_broken
        }
        return list(self._legacy_clients.values())


class _LegacyClient:
    """A legacy connection."""

    def __init__(self, context: Context) -> None:
        self.context = context  # keeps the key, an object id, from being reused
        self.level: LogLevel = "debug"
        self.resources: set[str] = set()
        self.queue: SendQueue[mcp_types.ServerNotification] = SendQueue(context.session.send_notification)


class _LogStream:
    """A running call whose client asked for the server's log messages (2026-07 protocol)."""

    def __init__(self, context: Context, server: str, level: LogLevel) -> None:
        self.server = server
        self.level = level

        async def send(notification: mcp_types.ServerNotification) -> None:
            await context.session.send_notification(notification, related_request_id=context.request_id)

        self.queue: SendQueue[mcp_types.ServerNotification] = SendQueue(send)
