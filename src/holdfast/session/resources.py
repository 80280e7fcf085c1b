"""What the sessions of one data directory share. `app` composes it; sessions are opened with it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.commands import CommandSandboxes, NoSandboxes
from holdfast.core import Clock, Value
from holdfast.guests import Engines
from holdfast.session.live.live_sessions import LiveSessions
from holdfast.session.settings import Settings
from holdfast.store import Home, Redactor, Store

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec


class SharedResources(Value, gc=True):
    """The store, engines, servers and settings of one data directory. Passed as an argument, never looked up."""

    home: Home
    settings: Settings
    store: Store
    engines: Engines
    clock: Clock
    servers: "Sequence[ServerSpec]" = ()
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from what the store writes and from what guests receive; it learns the key of each opened model."""
    sandboxes: CommandSandboxes = msgspec.field(default_factory=NoSandboxes)
    """Opens the sandboxes in which the programs of sessions run."""
    live: LiveSessions = msgspec.field(default_factory=LiveSessions)
