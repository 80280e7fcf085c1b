"""What the routes of the web server work on."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.app import Runtime
from holdfast.core import Clock, SessionId
from holdfast.core.errors import InvalidInput
from holdfast.services import KeptWords
from holdfast.store import Home, Store, WorkStore
from holdfast.web.devices import Device, Devices
from holdfast.web.event_feed import EventFeed
from holdfast.web.session_host import SessionHost

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebContext:
    """The parts of one running web server."""

    home: Home
    store: Store
    runtime: Runtime
    clock: Clock
    devices: Devices
    feed: EventFeed
    hosted: SessionHost
    keys: WorkStore | None = None
    """The store with the API keys; None if only browsers that entered may use this server."""
    origin: str
    """Where browsers reach this server, such as `http://127.0.0.1:7788`."""
    words: KeptWords = field(default_factory=KeptWords)
    """Of the last list of what waits."""
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

    @property
    def session(self) -> SessionId:
        """The session that the path names."""
        return SessionId(self.path["session"])

    def given(self, kind: type[Body]) -> Body:
        """The body, of the type that the route takes."""
        assert isinstance(self.body, kind)
        return self.body

    def number(self, name: str, default: int) -> int:
        """A number of the query. Raises InvalidInput."""
        given = self.query.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdigit() or len(given) > 12:
            raise InvalidInput(f"{name} must be a number")
        return int(given)
