"""Hosts in canonical form, and whether they are on the public internet.

Rules compare hosts and the proxy of commands dials them, so both take their spelling from here.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

_LOCAL_SUFFIXES = (
    "localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "localdomain",
    "localdomain6", "svc",
)  # fmt: skip
_REBINDING_SUFFIXES = (
    "nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "traefik.me", "1u.ms", "rbndr.us",
    "localhost.direct", "ipv6-literal.net",
)  # fmt: skip
"""Public domains whose names resolve to the address encoded in them, including private ones."""
_LOOPBACK_SUFFIXES = ("localhost", "localdomain", "localdomain6", *_REBINDING_SUFFIXES)
_METADATA_SUFFIXES = (
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
)
_METADATA_NAMES = frozenset(("metadata", "instance-data", "rancher-metadata"))
"""First labels of the metadata services of clouds, which hand out credentials to every program on the machine."""
_ADDRESS_IN_NAME = re.compile(r"(?<!\d)(?=(\d{1,3}[._-]\d{1,3}[._-]\d{1,3}[._-]\d{1,3})(?!\d))")
"""Matches overlap: `ec2-10-0-0-1` contains 2.10.0.0 and 10.0.0.1."""
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_MAX_HOST_LENGTH = 4 * 253
"""The longest spelling of a host, with every character escaped. Longer text is not a host and is not cached."""
_IDNA_DEVIATIONS = frozenset("ßς\u200c\u200d")


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


@lru_cache(maxsize=1024)
def is_this_machine(host: str) -> bool:
    """Whether a canonical host is the machine itself, as far as its text can tell: loopback, or a name that leads there."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        encoded = (each.is_loopback or each.is_unspecified for each in _addresses_in(host))
        return _ends_with(host, _LOOPBACK_SUFFIXES) or any(encoded)
    return address.is_loopback or address.is_unspecified


@lru_cache(maxsize=1024)
def is_public_host(host: str) -> bool:
    """Whether a canonical host is on the public internet, as far as its text can tell."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        suffixes = _LOCAL_SUFFIXES + _REBINDING_SUFFIXES + _METADATA_SUFFIXES
        if "." not in host or _ends_with(host, suffixes) or host.partition(".")[0] in _METADATA_NAMES:
            return False
        return not _encodes_private_address(host)
    return is_public_address(address)


def _encodes_private_address(host: str) -> bool:
    """Whether a name encodes an address that is not public, as rebinding services use it."""
    return not all(map(is_public_address, _addresses_in(host)))


def _addresses_in(host: str) -> Iterator[ipaddress.IPv4Address]:
    """The addresses that a name contains in any spelling of four numbers."""
    for found in _ADDRESS_IN_NAME.finditer(host):
        numbers = [int(number) for number in re.split("[._-]", found[1])]
        if max(numbers) <= 255:
            yield ipaddress.IPv4Address(bytes(numbers))


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


def is_public_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is assigned for the public internet; the address inside a mapped or translated one decides."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(inner)
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
