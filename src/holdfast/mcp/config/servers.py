"""Server specs: which MCP servers there are, read from `mcp-servers.json` and checked.

Two forms are read: the common `{"mcpServers": {NAME: entry}}` and the bare `{NAME: entry}`. An entry is either a
program (`command`, `args`, `env`) or a streamable HTTP address (`url`, `headers`).
"""

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from holdfast.core import JsonObject, Value, digest
from holdfast.core.errors import InvalidConfig
from holdfast.mcp.config.sandbox import Sandbox, read_sandbox

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
"""Groups of operations that are ours; a server of that name could pass its tools off as our own."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,62}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IGNORED = frozenset(["autoApprove", "alwaysAllow", "disabled", "enabled", "trust", "timeout", "transport"])
"""Keys of other clients. None of them may loosen anything here, so they are noted and not obeyed."""


class ServerSpec(Value):
    """One entry of `mcp-servers.json`. Exactly one of `command` and `url` is set."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """As written; `${VAR}` is filled in when the server starts, and only for names in `variables`."""
    variables: tuple[str, ...] = ()
    """The allowance: variables of our own environment that this entry may use."""
    url: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    description: str = ""
    roles: str = ""
    """Which server's argument roles hold for it, where its own name does not say."""
    start_seconds: float = 30.0
    call_seconds: float = 120.0
    sandbox: Sandbox | None = None
    """What it is confined to; None runs it with this user's rights."""
    notes: tuple[str, ...] = ()
    """What the entry asks for and does not get."""

    @property
    def transport(self) -> Literal["stdio", "http"]:
        """How it is reached."""
        return "http" if self.url else "stdio"

    @property
    def source(self) -> str:
        """Names the program or address behind the name; another program under an old name is another server."""
        return digest([self.command, self.args, self.url])


def load_servers(source: Path | str | Mapping[str, object]) -> tuple[ServerSpec, ...]:
    """The specs in a file or mapping. Raises InvalidConfig, naming file and entry."""
    place = "mcp-servers.json" if isinstance(source, Mapping) else str(source)
    document = dict(source) if isinstance(source, Mapping) else _read(Path(source))
    entries = document.get("mcpServers", document)
    if not isinstance(entries, Mapping):
        raise InvalidConfig(
            f"{place}: 'mcpServers' is not an object", hint='write {"mcpServers": {"NAME": {...}}}'
        )
    specs = tuple(_spec(place, str(name), entry) for name, entry in entries.items() if name != "$schema")
    folded: dict[str, str] = {}
    for spec in specs:
        other = folded.setdefault(spec.name.casefold().replace("_", "-"), spec.name)
        if other != spec.name:
            raise InvalidConfig(
                f"{place}: servers {other!r} and {spec.name!r} are told apart by nothing a person sees"
            )
    return specs


def variables_in(text: str) -> tuple[str, ...]:
    """The names between `${` and `}`."""
    return tuple(match.group(1) for match in _VARIABLE.finditer(text))


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """The text with every `${VAR}` replaced."""
    return _VARIABLE.sub(lambda match: values[match.group(1)], text)


def _read(path: Path) -> dict[str, object]:
    try:
        text = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8 in it
        raise InvalidConfig(f"{path}: {error}", hint="it has to be one JSON object") from error


class _Entry(msgspec.Struct, rename="camel"):
    """An entry as it stands in the file."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    variables: list[str] = []
    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "sse", ""] = ""
    url: str = ""
    headers: dict[str, str] = {}
    description: str = ""
    roles: str = ""
    start_seconds: float = 30.0
    call_seconds: float = 120.0
    sandbox: bool | JsonObject | None = None


_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(_Entry))


def _spec(place: str, name: str, raw: object) -> ServerSpec:
    where = f"{place}: server {name!r}"
    if not _NAME.fullmatch(name):
        raise InvalidConfig(
            f"{where}: a server's name has 1 to 63 letters, digits, '-' or single '_'",
            hint="the name becomes the first part of every tool's name, as in NAME.tool",
        )
    if name.lower() in RESERVED_NAMES:
        raise InvalidConfig(f"{where}: this name is ours", hint="call it something else")
    try:
        entry = msgspec.convert(raw, _Entry)
        sandbox = read_sandbox(entry.sandbox)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{where}: {error}") from error
    unknown = sorted(set(raw) - _KEYS) if isinstance(raw, Mapping) else []
    if strange := [key for key in unknown if key not in _IGNORED]:
        raise InvalidConfig(
            f"{where}: unknown key {strange[0]!r}", hint=f"known keys: {', '.join(sorted(_KEYS))}"
        )
    if bool(entry.command) == bool(entry.url):
        raise InvalidConfig(f"{where}: give either 'command' (a program) or 'url' (an address)")
    if entry.type == "sse":
        raise InvalidConfig(
            f"{where}: the SSE transport is not served", hint="ask the server for streamable HTTP"
        )
    if entry.url:
        _check_url(where, entry.url)
        if sandbox is not None:
            raise InvalidConfig(f"{where}: only a program can have a 'sandbox', not an address")
    if not 0 < entry.start_seconds <= 600 or not 0 < entry.call_seconds <= 86_400:
        raise InvalidConfig(
            f"{where}: 'startSeconds' is above 0 up to 600, 'callSeconds' above 0 up to 86400"
        )
    _check_variables(where, entry)
    notes = [f"{key!r} is another client's setting and has no effect here" for key in unknown]
    return ServerSpec(
        name=name,
        command=entry.command,
        args=tuple(entry.args),
        env=entry.env,
        variables=tuple(entry.variables),
        url=entry.url,
        headers=entry.headers,
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
        raise InvalidConfig(f"{where}: 'url' is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidConfig(f"{where}: 'url' has to start with https:// or http://")
    if has_secret:
        raise InvalidConfig(f"{where}: 'url' holds a password", hint="use 'headers' with a ${VARIABLE}")
    if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        raise InvalidConfig(f"{where}: plain http:// is for this machine only", hint="use https://")


def _check_variables(where: str, entry: _Entry) -> None:
    for key in entry.env:
        if not _IDENTIFIER.fullmatch(key):
            raise InvalidConfig(f"{where}: {key!r} is no name of a variable")
    for text in (*entry.args, *entry.env.values(), *entry.headers.values()):
        for variable in variables_in(text):
            if variable not in entry.variables:
                raise InvalidConfig(
                    f"{where}: uses ${{{variable}}} without an allowance",
                    hint=f'add "variables": ["{variable}"] to the entry',
                )
    if entry.url and variables_in(entry.url):
        raise InvalidConfig(f"{where}: 'url' takes no variables", hint="put secrets in 'headers'")
