"""Server specs: the entries of `mcp-servers.json`, parsed and checked.

Both the common form `{"mcpServers": {NAME: entry}}` and the short form `{NAME: entry}` are accepted. An entry is either a
program (`command`, `args`, `env`) or an address (`url`, `headers`); `transports` says which addresses are supported.
"""

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from holdfast.core import JsonObject, Value, digest
from holdfast.core.errors import InvalidConfig
from holdfast.mcp.config.sandbox import Sandbox, parse_sandbox
from holdfast.mcp.config.transports import (
    STDIO,
    URL_TRANSPORTS,
    EntryType,
    ServerTransport,
    transport_for,
)
from holdfast.store import read_settings

RESERVED_NAMES = frozenset(
    [
        "agent",
        "assert",
        "claude",
        "eval",
        "external",
        "facts",
        "files",
        "fixpoint",
        "holdfast",
        "llm",
        "memo",
        "model",
        "net",
        "person",
        "proxy",
        "session",
        "shell",
        "subeval",
        "teams",
        "workspace",
        "world",
    ]
)
"""Operation groups of Holdfast. A server with such a name could pass its tools off as ours."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,62}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IGNORED = frozenset(["autoApprove", "alwaysAllow", "disabled", "enabled", "trust", "timeout", "transport"])
"""Keys of other clients. Some would make Holdfast less strict, so all are reported and ignored."""


class ServerSpec(Value):
    """One entry of `mcp-servers.json`. Exactly one of `command` and `url` is set."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """As written. `${VAR}` is expanded when the server starts, and only for names in `variables`."""
    variables: tuple[str, ...] = ()
    """The variables of our environment that this entry may use."""
    url: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    public: tuple[str, ...] = ()
    """Names in `env`, `headers` and `variables` whose values are not secret."""
    description: str = ""
    roles: str = ""
    """The server whose argument roles apply, if neither the name nor the package identifies it."""
    start_seconds: float = 30.0
    call_seconds: float = 120.0
    sandbox: Sandbox | None = None
    """What the program may access; None runs it with the user's permissions."""
    notes: tuple[str, ...] = ()
    """Settings of the entry that have no effect."""

    @property
    def transport(self) -> ServerTransport:
        """How the server is reached."""
        if not self.url:
            return STDIO
        transport = transport_for(urlsplit(self.url).scheme)
        assert transport is not None, "`load_servers` checks the URL"
        return transport

    @property
    def source(self) -> str:
        """A digest of the program or address. A different one under the same name is a different server."""
        return digest([self.command, self.args, self.url])


def load_servers(source: Path | str | Mapping[str, object]) -> tuple[ServerSpec, ...]:
    """The specs in a file or mapping. Raises InvalidConfig, which names the file and the entry."""
    file_name = "mcp-servers.json" if isinstance(source, Mapping) else str(source)
    document = dict(source) if isinstance(source, Mapping) else _read(Path(source))
    entries = document.get("mcpServers", document)
    if not isinstance(entries, Mapping):
        raise InvalidConfig(
            f"{file_name}: 'mcpServers' is not an object", hint='write {"mcpServers": {"NAME": {...}}}'
        )
    specs = tuple(_spec(file_name, str(name), entry) for name, entry in entries.items() if name != "$schema")
    folded: dict[str, str] = {}
    for spec in specs:
        other = folded.setdefault(spec.name.casefold().replace("_", "-"), spec.name)
        if other != spec.name:
            raise InvalidConfig(f"{file_name}: the server names {other!r} and {spec.name!r} look the same")
    return specs


def variable_names(text: str) -> tuple[str, ...]:
    """The names between `${` and `}`."""
    return tuple(match.group(1) for match in _VARIABLE.finditer(text))


def expand_variables(text: str, values: Mapping[str, str]) -> str:
    """Replace every `${VAR}` in a text."""
    return _VARIABLE.sub(lambda match: values[match.group(1)], text)


def _read(path: Path) -> dict[str, object]:
    try:
        text = read_settings(path).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (ValueError, RecursionError) as error:  # invalid JSON or invalid UTF-8
        raise InvalidConfig(f"{path}: {error}", hint="the file must be one JSON object") from error


class _Entry(msgspec.Struct, rename="camel"):
    """An entry as written in the file."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    variables: list[str] = []
    type: EntryType = ""
    url: str = ""
    headers: dict[str, str] = {}
    public: list[str] = []
    description: str = ""
    roles: str = ""
    start_seconds: float = 30.0
    call_seconds: float = 120.0
    sandbox: bool | JsonObject | None = None


_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(_Entry))


def _spec(file_name: str, name: str, raw: object) -> ServerSpec:
    where = f"{file_name}: server {name!r}"
    if not _NAME.fullmatch(name):
        raise InvalidConfig(
            f"{where}: a server name has 1 to 63 letters, digits, '-' or single '_'",
            hint="the name is the first part of each tool's name, as in NAME.tool",
        )
    if name.lower() in RESERVED_NAMES:
        raise InvalidConfig(f"{where}: this name is reserved for Holdfast", hint="choose another name")
    try:
        entry = msgspec.convert(raw, _Entry)
        sandbox = parse_sandbox(entry.sandbox)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{where}: {error}") from error
    unknown = sorted(set(raw) - _KEYS) if isinstance(raw, Mapping) else []
    if unsupported := [key for key in unknown if key not in _IGNORED]:
        raise InvalidConfig(
            f"{where}: unknown key {unsupported[0]!r}", hint=f"known keys: {', '.join(sorted(_KEYS))}"
        )
    if bool(entry.command) == bool(entry.url):
        raise InvalidConfig(f"{where}: needs either 'command' (a program) or 'url' (an address)")
    if entry.type == "sse":
        raise InvalidConfig(
            f"{where}: the SSE transport is not supported", hint="use the server's streamable HTTP address"
        )
    if entry.url:
        _check_url(where, entry.url)
        if sandbox is not None:
            raise InvalidConfig(f"{where}: only a program can have a 'sandbox'")
    if not 0 < entry.start_seconds <= 600 or not 0 < entry.call_seconds <= 86_400:
        raise InvalidConfig(
            f"{where}: 'startSeconds' must be above 0 and at most 600, 'callSeconds' above 0 and at most 86400"
        )
    _check_variables(where, entry)
    notes = [f"{key!r} is a setting of another client and has no effect" for key in unknown]
    return ServerSpec(
        name=name,
        command=entry.command,
        args=tuple(entry.args),
        env=entry.env,
        variables=tuple(entry.variables),
        url=entry.url,
        headers=entry.headers,
        public=tuple(entry.public),
        description=entry.description,
        roles=entry.roles,
        start_seconds=entry.start_seconds,
        call_seconds=entry.call_seconds,
        sandbox=sandbox,
        notes=tuple(notes),
    )


def _check_url(where: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        host, has_secret = parts.hostname, parts.username is not None or parts.password is not None
    except ValueError as error:
        raise InvalidConfig(f"{where}: 'url' is not a valid address: {error}") from error
    transport = transport_for(parts.scheme)
    if transport is None or not host:
        raise InvalidConfig(f"{where}: 'url' must start with {_supported_schemes()}")
    if has_secret:
        raise InvalidConfig(f"{where}: 'url' contains a password", hint="use 'headers' with a ${VARIABLE}")
    if parts.scheme in transport.local_schemes and host not in ("localhost", "127.0.0.1", "::1"):
        raise InvalidConfig(
            f"{where}: {parts.scheme}:// is allowed only for this machine",
            hint=f"use {transport.schemes[0]}://",
        )


def _supported_schemes() -> str:
    schemes = [f"{each}://" for one in URL_TRANSPORTS for each in (*one.schemes, *one.local_schemes)]
    return " or ".join(schemes)


def _check_variables(where: str, entry: _Entry) -> None:
    for key in entry.env:
        if not _IDENTIFIER.fullmatch(key):
            raise InvalidConfig(f"{where}: {key!r} is not a valid variable name")
    for text in (*entry.args, *entry.env.values(), *entry.headers.values()):
        for variable in variable_names(text):
            if variable not in entry.variables:
                raise InvalidConfig(
                    f"{where}: uses ${{{variable}}}, which 'variables' does not list",
                    hint=f'add "variables": ["{variable}"] to the entry',
                )
    for name in entry.public:
        if name not in {*entry.env, *entry.headers, *entry.variables}:
            raise InvalidConfig(
                f"{where}: 'public' names {name!r}, which is not in 'env', 'headers' or 'variables'",
                hint="'public' lists the names whose values may be recorded and shown",
            )
    if entry.url and variable_names(entry.url):
        raise InvalidConfig(f"{where}: 'url' cannot contain variables", hint="put secrets in 'headers'")
