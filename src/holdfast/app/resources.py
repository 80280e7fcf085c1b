"""Composing what the sessions of one data directory share, and the redactor that knows every secret we pass on."""

import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.commands import CommandSandboxes, SystemSandboxes
from holdfast.config import read_config
from holdfast.core import Clock, SystemClock
from holdfast.core.errors import HoldfastError
from holdfast.guests import Engines
from holdfast.models import secrets
from holdfast.process.memory import return_large_blocks
from holdfast.session import LiveSessions, Settings, SharedResources
from holdfast.store import (
    KEY_FILE_VARIABLE,
    MIN_SECRET_LENGTH,
    STORE_VARIABLE,
    Home,
    Redactor,
    Store,
    open_store,
    read_own,
    read_plain,
)

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec

_SECRET_FIELDS = ("url", "token", "secret", "password", "bot_token", "app_token")
"""Of a messenger or a target of notifications."""


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
    redact = redactor((*servers, *_known_servers(directory)), settings, directory)
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


def redactor(servers: "Sequence[ServerSpec]", settings: Settings, home: Home | None = None) -> Redactor:
    """A redactor for the secrets we pass on or keep: keys of providers, values that entries of servers, messengers and targets of
    notifications name, the password of the store, tokens of teams, and the keys of the data directory.
    """
    handed: list[str] = []
    if specs := [*servers, *_services(settings, os.environ)]:
        from holdfast.mcp import secrets_of

        handed = [one for spec in specs for one in secrets_of(spec, os.environ)]
    of_home = (*_team_tokens(home), *_home_keys(home)) if home is not None else ()
    known = (*secrets(os.environ, settings.model_requests), *handed, *of_home)
    return Redactor(*(secret for secret in known if len(secret) >= MIN_SECRET_LENGTH))


def _services(settings: Settings, environ: Mapping[str, str]) -> "Iterator[ServerSpec]":
    """Who gets a secret and is not an MCP server, as if it were one: what counts as a secret is the same for all."""
    store = environ.get(STORE_VARIABLE, "")
    services = {**settings.notify.targets, **settings.messengers}
    if not store and not services:
        return
    from holdfast.mcp import ServerSpec

    yield ServerSpec(name="store", env={STORE_VARIABLE: store})
    for name, service in services.items():
        given = {field: getattr(service, field, "") for field in _SECRET_FIELDS}
        # An entry of the keyring is known to the process that uses it.
        yield ServerSpec(
            name=name,
            env={field: text for field, text in given.items() if not text.startswith("keyring:")},
        )


def _home_keys(home: Home) -> Iterator[str]:
    """The keys of a data directory, as programs show bytes, and those that machines share."""
    for path in (home.key_file, home.export_key_file):
        if content := read_own(path):
            yield from (content.hex(), base64.b64encode(content).decode())
    if given := os.environ.get(KEY_FILE_VARIABLE):
        yield from (read_own(Path(given)) or b"").decode("ascii", "replace").split()
