"""What the routes of the web server work on."""

import asyncio
from dataclasses import dataclass, field

from holdfast.app import Runtime
from holdfast.core import Clock
from holdfast.store import Home, Store
from holdfast.web.devices import Device, Devices
from holdfast.web.event_feed import EventFeed
from holdfast.web.hosted import HostedSessions


@dataclass(frozen=True, slots=True, kw_only=True)
class WebContext:
    """The parts of one running web server."""

    home: Home
    store: Store
    runtime: Runtime
    clock: Clock
    devices: Devices
    feed: EventFeed
    hosted: HostedSessions
    origin: str
    """Where browsers reach this server, such as `http://127.0.0.1:7788`."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """A request that passed the guard, with its body decoded."""

    context: WebContext
    device: Device
    path: dict[str, str]
    query: dict[str, str]
    body: object = None
