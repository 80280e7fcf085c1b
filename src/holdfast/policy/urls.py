"""URLs in canonical form, whether their host is public, and host patterns.

The pattern `*` matches the public internet only. A rule must name localhost, private and link-local addresses, metadata
services and names that encode an address. Text that is not a URL never matches.
"""

import ipaddress
import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from holdfast.core import Role, UrlTarget
from holdfast.core.globs import casefold_path

_LOCAL_SUFFIXES = (
    "localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "localdomain",
    "localdomain6", "svc",
)  # fmt: skip
_REBINDING_SUFFIXES = (
    "nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "traefik.me", "1u.ms", "rbndr.us",
    "localhost.direct", "ipv6-literal.net",
)  # fmt: skip
"""Public domains whose names resolve to the address encoded in them, including private ones."""
_METADATA_SUFFIXES = (
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
)
_METADATA_NAMES = frozenset(("metadata", "instance-data", "rancher-metadata"))
"""First labels of the metadata services of clouds, which hand out credentials to whoever runs on the machine."""
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
_ADDRESS_IN_NAME = re.compile(r"(?<!\d)(?=(\d{1,3}[._-]\d{1,3}[._-]\d{1,3}[._-]\d{1,3})(?!\d))")
"""Matches overlap: `ec2-10-0-0-1` contains 2.10.0.0 and 10.0.0.1."""
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_MAX_HOST_LENGTH = 4 * 253
"""The longest spelling of a host, with every character escaped. Longer text is not a host and is not cached."""
_IDNA_DEVIATIONS = frozenset("ßς\u200c\u200d")


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


def canonical_host(host: str) -> str | None:
    """Lower case, punycode, addresses in full; None if the text is not a host."""
    return _canonical_host(host) if len(host) <= _MAX_HOST_LENGTH else None


@lru_cache(maxsize=1024)
def _canonical_host(host: str) -> str | None:
    host = unquote(host).lower().removesuffix(".")
    if ":" in host:
        return _canonical_ip6(host)
    if not host.isascii():
        if _IDNA_DEVIATIONS & set(host):  # IDNA 2003 and 2008 disagree about the host
            return None
        try:
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            return None
    labels = host.split(".")
    if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        return _canonical_ip4(labels)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    return host


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
    return _is_public_host(target.host)


def match_host(pattern: str, target: UrlTarget, *, for_deny: bool = False) -> bool:
    """Whether a pattern (`*`, `host`, `*.host`, `host:port`, `host/path`) matches the target. With `for_deny`, a path
    matches in every spelling that some server accepts for it."""
    if target.problem is not None:
        return False
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
    if pattern == "*":
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
    if colon and port.isdigit():
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


@lru_cache(maxsize=1024)
def _is_public_host(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        suffixes = _LOCAL_SUFFIXES + _REBINDING_SUFFIXES + _METADATA_SUFFIXES
        if "." not in host or _ends_with(host, suffixes) or host.partition(".")[0] in _METADATA_NAMES:
            return False
        return not _encodes_private_address(host)
    return _is_public_address(address)


def _encodes_private_address(host: str) -> bool:
    """Whether a name encodes an address that is not public, as rebinding services use it."""
    for found in _ADDRESS_IN_NAME.finditer(host):
        numbers = [int(number) for number in re.split("[._-]", found[1])]
        if max(numbers) <= 255 and not _is_public_address(ipaddress.IPv4Address(bytes(numbers))):
            return True
    return False


def _ends_with(host: str, suffixes: tuple[str, ...]) -> bool:
    return any(host == suffix or host.endswith("." + suffix) for suffix in suffixes)


def _canonical_ip4(labels: list[str]) -> str | None:
    """As inet_aton does: one to four parts in decimal, octal or hexadecimal, the last one filling the rest."""
    if not 1 <= len(labels) <= 4:
        return None
    numbers: list[int] = []
    for label in labels:
        try:
            if label.startswith("0x"):
                numbers.append(int(label[2:] or "0", 16))
            elif len(label) > 1 and label[0] == "0":
                numbers.append(int(label, 8))
            elif label.isascii() and label.isdigit() and len(label) <= 10:
                numbers.append(int(label))
            else:
                return None
        except ValueError:
            return None
    *head, last = numbers
    if any(number > 255 for number in head) or last >= 256 ** (4 - len(head)):
        return None
    value = last
    for position, number in enumerate(head):
        value += number << (8 * (3 - position))
    return str(ipaddress.IPv4Address(value))


def _canonical_ip6(host: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return None
    if address.scope_id is not None:
        return None
    return str(address.ipv4_mapped or address)


def _is_public_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public_address(inner)
    if isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address not in _UNICAST):
        return False
    is_special = address.is_multicast or address.is_reserved or address.is_private or address.is_link_local
    is_reserved = any(address in network for network in _RESERVED if network.version == address.version)
    return address.is_global and not is_special and not is_reserved


_RESERVED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments, and the metadata service of one cloud
        "168.63.129.16/32",  # the platform address of another cloud
        "::/96",  # IPv4 addresses in forms that are not routed publicly
        "::ffff:0:0:0/96",
        "64:ff9b:1::/48",
        "3fff::/20",
        "5f00::/16",
    )
)
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The only IPv6 addresses that are assigned for the public internet."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
