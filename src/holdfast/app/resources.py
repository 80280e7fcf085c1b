"""Composing what the sessions of one data directory share, and the redactor that knows every secret we pass on."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.commands import CommandSandboxes, SystemSandboxes
from holdfast.config import read_config
from holdfast.core import Clock, SystemClock
from holdfast.core.errors import HoldfastError
from holdfast.guests import Engines
from holdfast.models import ModelSettings, secrets
from holdfast.process.memory import return_large_blocks
from holdfast.session import LiveSessions, Settings, SharedResources
from holdfast.store import MIN_SECRET_LENGTH, Home, Redactor, Store, open_store, read_plain

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec


async def compose_resources(
    *,
    home: str | Path | None,
    settings: Settings | None,
    store: Store | None,
    store_url: str | None = None,
    engines: Engines | None,
    clock: Clock | None,
    servers: "Sequence[ServerSpec] | None",
    max_sessions: int,
    sandboxes: CommandSandboxes | None = None,
) -> SharedResources:
    """Open a data directory and everything below it. Settings and servers that are None come from its files."""
    return_large_blocks()
    clock = clock or SystemClock()
    directory = Home(Path(home)) if home is not None else Home.default()
    # Before anything is created, so that a mistake in a file leaves nothing open.
    settings = settings if settings is not None else read_config(directory).settings
    servers = servers if servers is not None else configured_servers(directory)
    directory.prepare()
    # Also of servers that this process does not start: their secrets may be in a file or in what a person types.
    redact = redactor((*servers, *_known_servers(directory)), settings.model_requests, directory)
    return SharedResources(
        home=directory,
        settings=settings,
        store=store or await open_store(directory, clock=clock, redact=redact, url=store_url),
        engines=engines
        or Engines(key=directory.key(), cache=directory.cache, value_bytes=settings.code.value_bytes),
        clock=clock,
        servers=tuple(servers),
        redactor=redact,
        sandboxes=sandboxes or SystemSandboxes(directory.cache),
        live=LiveSessions(max_sessions=max_sessions),
    )


def configured_servers(home: Home) -> "tuple[ServerSpec, ...]":
    """The MCP servers in mcp-servers.json of a data directory; none without the file. Raises InvalidConfig."""
    path = home.root / "mcp-servers.json"
    if not path.exists():
        return ()
    from holdfast.mcp import load_servers  # here, because many data directories have no servers

    return load_servers(path)


def _known_servers(home: Home) -> "tuple[ServerSpec, ...]":
    try:
        return configured_servers(home)
    except (OSError, HoldfastError):
        return ()  # the command that needs them reports the error


def _team_tokens(home: Home) -> Iterator[str]:
    """The tokens of the clients of `teams serve`."""
    for path in home.root.glob("teams/**/tokens.json"):
        try:
            kept = msgspec.json.decode(read_plain(path, max_bytes=1 << 20), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            continue  # the command that needs them reports the error
        yield from kept.values()


def redactor(
    servers: "Sequence[ServerSpec]", model_requests: ModelSettings, home: Home | None = None
) -> Redactor:
    """A redactor for the secrets we pass on: keys of providers, values that server entries name, and tokens of teams."""
    of_servers: list[str] = []
    if servers:
        from holdfast.mcp import secrets_of

        of_servers = [one for spec in servers for one in secrets_of(spec, os.environ)]
    of_teams = _team_tokens(home) if home is not None else ()
    known = (*secrets(os.environ, model_requests), *of_servers, *of_teams)
    return Redactor(*(secret for secret in known if len(secret) >= MIN_SECRET_LENGTH))
