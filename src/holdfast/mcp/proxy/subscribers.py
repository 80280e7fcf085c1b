"""The audience: every client that is told news, each in the way of its era.

A client of the older era is told unasked, on its connection. One of the newer era is told of changes on streams that it
opened, and of log messages while a call of its own runs that asked for them. Nobody is waited for.

An outbox: what is to be sent to one client, in order and bounded.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import mcp_types
from mcp.server.context import ServerRequestContext as Context
from mcp.shared.subscriptions import ResourceUpdated, ServerEvent, event_to_notification

from holdfast.mcp.client.notifications import NEWER_ERA
from holdfast.mcp.contract import LOG_LEVELS, Logged, LogLevel

_Item = TypeVar("_Item")

BACKLOG = 64
"""How far a slow client may be behind; then the oldest is dropped, for a later one says more."""


class SendQueue(Generic[_Item]):
    """Sends one thing after the other. There is a task only while there is something to send."""

    def __init__(self, send: Callable[[_Item], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: deque[_Item] = deque(maxlen=BACKLOG)
        self._sending: asyncio.Task[None] | None = None
        self.is_broken = False
        """Whether the client is gone; how it left does not matter."""

    def put(self, item: _Item) -> None:
        """Have it sent; must be called from the event loop, and never waits."""
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
        """Drop what is left."""
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


MAX_MEMBERS = 256
"""Connections of the older era that are remembered; over HTTP, one that left may never say so."""
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
Listener = Callable[[ServerEvent], None]


class Subscribers:
    """Who is told what."""

    def __init__(self) -> None:
        self._members: dict[int, _Member] = {}
        self._streams: dict[object, Listener] = {}
        self._calls: dict[object, _Hearing] = {}

    def remember(self, context: Context) -> None:
        """Tell this client the news from here on, if it is of the older era."""
        if context.protocol_version < NEWER_ERA and context.session.client_params is not None:
            self._member(context)

    def set_level(self, context: Context, level: LogLevel) -> None:
        """Tell this client only log messages of this level or above."""
        self._member(context).level = level

    def subscribe_to(self, context: Context, uri: str) -> None:
        """Tell this client when the resource changes."""
        self._member(context).resources.add(uri)

    def unsubscribe_from(self, context: Context, uri: str) -> None:
        """Tell it no more."""
        self._member(context).resources.discard(uri)

    def is_waited_for(self, uri: str) -> bool:
        """Whether a client of the older era wants to hear of a resource."""
        return any(uri in member.resources for member in self._members.values())

    @contextmanager
    def hearing(self, context: Context, server: str) -> Iterator[LogLevel | None]:
        """While a call to a server runs, its client hears the server's log if it asked to; yields from which level on."""
        wanted = (context.meta or {}).get(_LOG_LEVEL)
        if context.protocol_version < NEWER_ERA or wanted not in LOG_LEVELS:
            yield None
            return
        key, level = object(), wanted
        hearing = self._calls[key] = _Hearing(context, server, level)
        try:
            yield level
        finally:
            del self._calls[key]
            hearing.outbox.close()

    # -- the library's bus of streams

    async def publish(self, event: ServerEvent) -> None:
        """Tell a change."""
        self.tell(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell every change to a stream; returns what ends that."""
        key = object()
        self._streams[key] = listener
        return lambda: self._streams.pop(key, None) and None

    # -- news

    def tell(self, event: ServerEvent) -> None:
        """Something changed."""
        for listener in tuple(self._streams.values()):
            listener(event)
        notification = event_to_notification(event, {})
        for member in self._present():
            if not isinstance(event, ResourceUpdated) or event.uri in member.resources:
                member.outbox.put(notification)

    def log(self, said: Logged) -> None:
        """A server said something."""
        logger = f"{said.server}.{said.logger}" if said.logger else said.server
        params = mcp_types.LoggingMessageNotificationParams(level=said.level, data=said.data, logger=logger)
        notification = mcp_types.LoggingMessageNotification(params=params)
        rank = LOG_LEVELS.index(said.level)
        for member in self._present():
            if rank >= LOG_LEVELS.index(member.level):
                member.outbox.put(notification)
        for hearing in self._calls.values():
            if hearing.server == said.server and rank >= LOG_LEVELS.index(hearing.level):
                hearing.outbox.put(notification)

    def _member(self, context: Context) -> "_Member":
        key = id(context.session.client_params)
        if key not in self._members:
            if len(self._members) >= MAX_MEMBERS:
                self._members.pop(next(iter(self._members))).outbox.close()
            self._members[key] = _Member(context)
        return self._members[key]

    def _present(self) -> "list[_Member]":
        self._members = {key: each for key, each in self._members.items() if not each.outbox.is_broken}
        return list(self._members.values())


class _Member:
    """A connection of the older era."""

    def __init__(self, context: Context) -> None:
        self.context = context  # keeps the key of the connection taken
        self.level: LogLevel = "debug"
        self.resources: set[str] = set()
        self.outbox: SendQueue[mcp_types.ServerNotification] = SendQueue(context.session.send_notification)


class _Hearing:
    """A call of the newer era under way, whose client hears the log of the server."""

    def __init__(self, context: Context, server: str, level: LogLevel) -> None:
        self.server = server
        self.level = level

        async def send(notification: mcp_types.ServerNotification) -> None:
            await context.session.send_notification(notification, related_request_id=context.request_id)

        self.outbox: SendQueue[mcp_types.ServerNotification] = SendQueue(send)
