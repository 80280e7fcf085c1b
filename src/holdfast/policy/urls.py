"""URLs in canonical form, whether their host is public, and host patterns.

The pattern `*` matches the public internet only. A rule must name localhost, private and link-local addresses, metadata
services and names that encode an address. Text that is not a URL never matches.
"""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urlsplit

from holdfast.core import Role, UrlTarget, canonical_host, is_public_host, is_this_machine
from holdfast.core.globs import casefold_path

GROUP_PREFIX = "group:"
_GROUP = re.compile(GROUP_PREFIX + r"[a-z][a-z0-9-]*")
_MAX_LENGTH = 8192
_WEB = ("http", "https")
_PORTS = {
    "http": 80,
    "https": 443,
    "ssh": 22,
    "git+ssh": 22,
    "ssh+git": 22,
    "git": 9418,
    "ftp": 21,
    "ftps": 990,
}
"""Default ports."""
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\x9f\\\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PORT = re.compile(r"[0-9]{1,5}")
"""Not `isdigit`: a superscript is a digit to it, and a number of thousands of digits cannot be converted."""


def canonical_url(text: str, *, role: Role = "fetch-url", argument: str = "url") -> UrlTarget:
    """The canonical form of a URL. Text that is not a URL gets a `problem`."""

    def invalid(problem: str) -> UrlTarget:
        return UrlTarget(role=role, argument=argument, given=text, problem=problem)

    if len(text) > _MAX_LENGTH:
        return invalid(f"is longer than {_MAX_LENGTH} characters")
    if _UNSAFE.search(text):
        return invalid("contains white space, a backslash or an invisible character")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return invalid(str(error))
    if not parts.scheme or not parts.netloc:
        return invalid("is not a URL with scheme and host")
    host = canonical_host(parts.hostname or "")
    if host is None:
        return invalid("has an invalid host")
    return UrlTarget(
        role=role,
        argument=argument,
        given=text,
        scheme=parts.scheme.lower(),
        host=host,
        port=port,
        path=canonical_path(parts.path),
    )


def canonical_path(path: str) -> str:
    """Dot segments resolved, even encoded ones; needless escapes decoded; no trailing slash."""
    segments: list[str] = []
    for segment in _ESCAPE.sub(_decode_needless, path).split("/"):
        if segment in ("", "."):
            continue
        if segment == "..":
            segments = segments[:-1]
        else:
            segments.append(segment)
    return "/" + "/".join(segments) if segments else ""


def is_public(target: UrlTarget) -> bool:
    """Whether a URL leads to a host on the public internet, as far as its text can tell."""
    if target.problem is not None or not target.host:
        return False
    if target.role == "fetch-url" and target.scheme not in _WEB:
        return False
    return is_public_host(target.host)


def leads_to(target: UrlTarget, endpoints: Iterable[tuple[str, int]]) -> bool:
    """Whether a target leads to one of these hosts and ports; `localhost` stands for every name of this machine."""
    port = target.port or _PORTS.get(target.scheme)
    return any(
        port == open_port and (target.host == host or (host == "localhost" and is_this_machine(target.host)))
        for host, open_port in endpoints
    )


def match_host(
    pattern: str, target: UrlTarget, *, for_deny: bool = False, groups: Sequence[str] = ()
) -> bool:
    """Whether a pattern (`*`, `host`, `*.host`, `host:port`, `host/path`, `group:name`) matches the target, whose host belongs to
    `groups`. With `for_deny`, a path matches in every spelling that some server accepts for it."""
    if target.problem is not None:
        return False
    if pattern.startswith(GROUP_PREFIX):
        return pattern[len(GROUP_PREFIX) :] in groups
    if pattern == "*":
        return is_public(target)
    place, slash, path = pattern.partition("/")
    name, port = split_port(place)
    if port is not None and port != (target.port or _PORTS.get(target.scheme)):
        return False
    if slash and not _matches_path(path, target, for_deny):
        return False
    if name.startswith("*."):
        return target.host == name[2:] or target.host.endswith(name[1:])
    return target.host == name


def canonical_pattern(pattern: str) -> str | None:
    """A host pattern in canonical form, or None if it is invalid."""
    if pattern == "*" or _GROUP.fullmatch(pattern):
        return pattern
    place, slash, path = pattern.partition("/")
    name, port = split_port(place)
    bare = canonical_host(name.removeprefix("*.").strip("[]"))
    if bare is None or "*" in bare:
        return None
    head = ("*." if name.startswith("*.") else "") + bare
    if port is not None:
        head = f"[{head}]:{port}" if ":" in head else f"{head}:{port}"
    return head + canonical_path(path if slash else "")


def split_port(place: str) -> tuple[str, int | None]:
    """`host:8080` -> (`host`, 8080); an IPv6 address with a port is in brackets."""
    if place.count(":") > 1 and not place.startswith("["):
        return place, None
    host, colon, port = place.rpartition(":")
    if colon and _PORT.fullmatch(port):
        return host.strip("[]"), int(port)
    return place.strip("[]"), None


def _matches_path(prefix: str, target: UrlTarget, for_deny: bool) -> bool:
    wanted = prefix.removesuffix(".git") if target.role == "git-remote-url" else prefix
    if not for_deny:
        is_ambiguous = "%2f" in target.path.lower() or "%5c" in target.path.lower()
        return not is_ambiguous and _is_path_prefix(target.path, wanted)
    spelled = casefold_path(unquote(target.path)).replace("\\", "/")
    given = (casefold_path(target.path), spelled, canonical_path(spelled))
    return any(_is_path_prefix(one, casefold_path(unquote(wanted))) for one in given)


def _is_path_prefix(path: str, prefix: str) -> bool:
    wanted, given = prefix.strip("/"), path.strip("/")
    return given == wanted or given.startswith(wanted + "/")


def _decode_needless(escape: re.Match[str]) -> str:
    """The character of an escape that has no special meaning; other escapes stay."""
    plain = chr(int(escape[0][1:], 16))
    return plain if plain.isascii() and (plain.isalnum() or plain in "-._~") else escape[0]
