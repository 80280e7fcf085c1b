"""The secrets of a server: every value that a person hands to it, unless it is public. They are redacted from the record.

A value counts by where it is, not by the name of its variable: in `env`, in `headers`, in a `${VARIABLE}` of an argument, and
after an argument such as `--api-key`. What is not secret is stated in `public`, or follows from the value: it is short, a number,
a common word, a path, or an address without a user, path or query.
"""

import base64
import binascii
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
    """The arguments that may be secret: those with a `${VARIABLE}`, and the value of an option such as `--api-key`."""
    previous = ""
    for text in spec.args:
        name, has_value, value = text.partition("=")
        if variable_names(text):
            yield previous, text
        elif has_value and name.startswith("-") and _SECRET_NAME.search(name):
            yield name, value
        elif previous.startswith("-") and "=" not in previous and _SECRET_NAME.search(previous):
            yield previous, text
        previous = text


def _parts(value: str) -> Iterator[str]:
    """A value, and the parts of it that a server may show on their own."""
    if value.split(" ", 1)[0].casefold() not in _SCHEMES:
        yield value
    pieces = [piece for piece in _SEPARATORS.split(value) if piece]
    for piece in pieces if len(pieces) > 1 else ():  # `Bearer TOKEN`, `user=me;password=SECRET`
        yield piece
        name, has_value, rest = piece.partition("=")
        if has_value and _SECRET_NAME.search(name):
            yield rest
    if value[:6].casefold() == "basic ":
        with suppress(binascii.Error, UnicodeDecodeError):
            yield base64.b64decode(value[6:], validate=True).decode().partition(":")[2]
    if "://" in value:
        yield from _address_parts(value)


def _address_parts(value: str) -> Iterator[str]:
    try:
        address = urlsplit(value)
    except ValueError:
        return
    for text in (address.password or "", *(given for _, given in parse_qsl(address.query))):
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
