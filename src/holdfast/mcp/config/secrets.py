"""The secrets of a server: every value that a person hands to it, unless it is public. They are redacted from the record.

A value counts by where it is, not by the name of its variable: in `env`, in `headers`, in a `${VARIABLE}` of an argument, after
an argument such as `--api-key`, and in arguments such as `-e API_KEY=...`, `--header 'Authorization: ...'` and
`postgresql://me:password@host`. What is not secret is stated in `public`, or follows from the value: it is short, a number, a
common word, a path, or an address without a user, path or query.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast.core.events import event_types
from holdfast.mcp.config.servers import ServerSpec, variable_names

MIN_SECRET_LENGTH = 6
"""Redacting shorter values, which may be ordinary words, would make results unreadable."""

_SECRET_NAME = re.compile(r"key|token|secret|passw|pwd|credential|auth|cookie|signature", re.IGNORECASE)
_NUMBER = re.compile(r"[\d.,:+\-_ ]+")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_RELATIVE_PATH = re.compile(r"(?:\.{1,2}|~|[a-z_.-]+)(?:/[a-z_.-]+)+/?|(?:\.{1,2}|~)/.*")
_ROOTS = (
    "Applications|Library|System|Users|Volumes|app|bin|boot|data|dev|etc|home|lib|lib64|media|mnt|nix|opt|private|proc|root|run"
    "|sbin|snap|srv|sys|tmp|usr|var|workspace"
)
_ABSOLUTE_PATH = re.compile(rf"/(?:{_ROOTS})(?:/[^:]*)?|/|[A-Za-z]:[\\/].*")
_SCHEMES = ("basic", "bearer", "token")
"""The first word of an `Authorization` header, which is not a part of the secret."""
_SEPARATORS = re.compile(r"[;&\s]+")
_NAMED_VALUE = re.compile(r"([\w.-]+)\s*[=:]\s*(.+)", re.DOTALL)
"""`--api-key=VALUE`, `API_KEY=VALUE`, `X-Api-Key: VALUE`."""
_ADDRESS = re.compile(r"[\w+.-]+://\S+")
_TOKEN = re.compile(r"(?=.*\d)(?=.*[A-Za-z]).{8,}", re.DOTALL)
"""What looks like a token, where a word would be a name or an option."""
_COMMON_WORDS = frozenset(
    [
        "accept",
        "allowed",
        "always",
        "application",
        "automatic",
        "basic",
        "bearer",
        "browser",
        "charset",
        "cluster",
        "compact",
        "console",
        "content",
        "default",
        "dependency",
        "detailed",
        "develop",
        "developer",
        "development",
        "digest",
        "disable",
        "disabled",
        "docker",
        "enable",
        "enabled",
        "english",
        "error",
        "errors",
        "example",
        "external",
        "false",
        "filesystem",
        "folder",
        "format",
        "github",
        "gitlab",
        "global",
        "google",
        "headless",
        "hidden",
        "info",
        "internal",
        "keep-alive",
        "language",
        "latest",
        "limited",
        "linear",
        "linux",
        "local",
        "localhost",
        "machine",
        "manual",
        "master",
        "memory",
        "message",
        "messages",
        "minimal",
        "nothing",
        "notion",
        "offline",
        "online",
        "optional",
        "options",
        "package",
        "playwright",
        "plain",
        "postgres",
        "postgresql",
        "private",
        "production",
        "project",
        "public",
        "python",
        "readonly",
        "read-only",
        "read-write",
        "remote",
        "required",
        "sandbox",
        "schema",
        "search",
        "server",
        "service",
        "session",
        "silent",
        "simple",
        "single",
        "slack",
        "source",
        "sqlite",
        "staging",
        "standard",
        "static",
        "stdio",
        "streamable-http",
        "string",
        "system",
        "terminal",
        "test",
        "testing",
        "text/plain",
        "text/html",
        "application/json",
        "trace",
        "true",
        "unknown",
        "update",
        "user",
        "username",
        "utf-8",
        "verbose",
        "version",
        "warning",
        "warnings",
        "windows",
        "workspace",
        "workspaces",
    ]
)


def secrets_of(spec: ServerSpec, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets that a server gets, so that they can be redacted from the record."""
    found: list[str] = []
    address = (("url", spec.url),) if spec.url else ()
    for name, text in (*spec.env.items(), *spec.headers.items(), *address, *_arguments(spec)):
        if name in spec.public:
            continue
        used = variable_names(text)
        handed = {each: environ[each] for each in used if each in environ and each not in spec.public}
        if not used:
            handed = {name: text}
        for variable, value in handed.items():
            is_named = _SECRET_NAME.search(f"{name} {variable}") is not None
            parts = (each.strip() for each in _parts(value))
            found += [
                each
                for each in parts
                if len(each) >= MIN_SECRET_LENGTH
                and each.casefold() not in _COMMON_WORDS
                and ((is_named and each == value.strip()) or not is_ordinary(each, spec))
            ]
    return tuple(dict.fromkeys(found))


def is_ordinary(value: str, spec: ServerSpec) -> bool:
    """Whether a value is too common to be a secret: redacting it would make records unreadable."""
    word = value.casefold()
    return (
        len(value) < MIN_SECRET_LENGTH
        or word in _COMMON_WORDS
        or word == spec.name.casefold()
        or _NUMBER.fullmatch(value) is not None
        or _REGION.fullmatch(value) is not None
        or all(_is_path(each) for each in value.split(":"))
        or _is_path(value)
        or _is_plain_address(value)
        # An event without one of the words of its own format could not be recorded.
        or any(value in each for each in _format_words())
    )


def _arguments(spec: ServerSpec) -> Iterator[tuple[str, str]]:
    """The arguments that may be secret, each with its name: with a `${VARIABLE}`, with a name such as `--api-key`, and addresses."""
    previous = ""
    for text in spec.args:
        if variable_names(text):
            yield previous, text
        else:
            if previous.startswith("-") and "=" not in previous and _SECRET_NAME.search(previous):
                yield previous, text
            yield from _named_values(text)
            if address := _ADDRESS.search(text):
                yield from (("", part) for part in _address_parts(address[0]))
        previous = text


def _named_values(text: str) -> Iterator[tuple[str, str]]:
    """The values in a text that have a name such as `API_KEY`, also after the name of an option: `--env=API_KEY=...`."""
    inner = text.partition("=")[2] if text.startswith("-") else ""
    for each in (text, inner):
        found = _NAMED_VALUE.fullmatch(each)
        if found is not None and _SECRET_NAME.search(found[1]):
            yield found[1], found[2]


def _parts(value: str) -> Iterator[str]:
    """A value, and the parts of it that a server may show on their own."""
    if value.split(" ", 1)[0].casefold() not in _SCHEMES:
        yield value
    pieces = [piece for piece in _SEPARATORS.split(value) if piece]
    yield from pieces if len(pieces) > 1 else ()  # `Bearer TOKEN`, `user=me;password=SECRET`
    for item in (item for piece in pieces for item in piece.split(",")):
        yield from (rest for _, rest in _named_values(item))
        if "://" not in item:
            yield from (each for each in (item, item.partition(":")[2]) if _TOKEN.fullmatch(each))
    if value[:6].casefold() == "basic ":
        with suppress(binascii.Error, UnicodeDecodeError):
            yield base64.b64decode(value[6:], validate=True).decode().partition(":")[2]
    if "://" in value:
        yield from _address_parts(value)
    if value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            yield from _json_parts(json.loads(value))


def _json_parts(value: Any, *, is_named: bool = False) -> Iterator[str]:  # Any: JSON that a person wrote
    """The texts in a JSON value that have a name such as `Authorization` or look like a token."""
    match value:
        case dict():
            for name, each in value.items():
                yield from _json_parts(each, is_named=is_named or _SECRET_NAME.search(name) is not None)
        case list():
            for each in value:
                yield from _json_parts(each, is_named=is_named)
        case str() if is_named or "://" in value or _TOKEN.fullmatch(value):
            yield from _parts(value)


def _address_parts(value: str) -> Iterator[str]:
    try:
        address = urlsplit(value)
    except ValueError:
        return
    given = [text for part in (address.query, address.fragment) for _, text in parse_qsl(part)]
    user = address.username or ""
    # A token may be the user: `https://TOKEN@host`. The name of a person is not secret.
    for text in (address.password or "", *((user,) if _TOKEN.fullmatch(user) else ()), *given):
        yield text
        yield unquote(text)
    # The token of a webhook is a part of its path. Names of resources are shorter, or words.
    yield from (part for part in address.path.split("/") if len(part) >= 16 and re.search(r"\d", part))


def _is_path(value: str) -> bool:
    return bool(_ABSOLUTE_PATH.fullmatch(value) or _RELATIVE_PATH.fullmatch(value))


def _is_plain_address(value: str) -> bool:
    try:
        address = urlsplit(value)
        is_bare = address.username is None and address.password is None
    except ValueError:
        return False
    has_more = address.path not in ("", "/") or address.query or address.fragment
    return bool(address.scheme and address.netloc and is_bare and not has_more)


@cache
def _format_words() -> frozenset[str]:
    """The names of fields, tags and fixed values in the JSON of events."""
    words: set[str] = set()

    def collect(schema: Any) -> None:  # Any: a JSON schema
        if isinstance(schema, dict):
            words.update(schema.get("properties", ()))
            words.update(each for each in schema.get("enum", ()) if isinstance(each, str))
            for each in schema.values():
                collect(each)
        elif isinstance(schema, list | tuple):
            for each in schema:
                collect(each)

    collect(msgspec.json.schema_components(event_types(), ref_template="#/{name}"))
    return frozenset(words)
