"""Addresses of hosts: resolved once, checked, and dialled as they were checked.

A name is never resolved again after it was judged, so a name whose answer changes cannot lead to another address.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Protocol

from holdfast.core import Value, canonical_host, is_public_address

CONNECT_SECONDS = 10.0
RESOLVE_SECONDS = 10.0
MAX_ADDRESSES = 4
"""How many addresses of a host are tried."""

_PRIVATE_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
        # Set aside for documentation and measurements: laboratories use them.
        "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15", "2001:db8::/32",
    )
)  # fmt: skip
_METADATA = frozenset(
    ipaddress.ip_address(address) for address in ("100.100.100.200", "fd00:ec2::254", "fd20:ce::254")
)
"""Metadata services of clouds that lie in private networks. They hand out credentials."""


class Network(Protocol):
    """How the proxy reaches hosts."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host name. Raises OSError."""
        ...

    async def connect(self, address: str, port: int) -> socket.socket:
        """A non-blocking connection to an address. Raises OSError."""
        ...


class SystemNetwork:
    """The network of this machine."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def connect(self, address: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, (address, port))
            if connection.getsockname()[0] == connection.getpeername()[0]:
                raise OSError(f"{address} is an address of this machine")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            connection.close()
            raise
        return connection


class ChosenAddresses(Value):
    """The addresses that may be dialled, or why none may be."""

    addresses: tuple[str, ...] = ()
    problem: str = ""
    private: tuple[str, ...] = ()
    """If none may be dialled: those that may be if the person allows a private address."""


async def choose_addresses(
    network: Network, host: str, port: int, *, allows_private: bool
) -> ChosenAddresses:
    """Resolve a canonical host and keep the addresses that programs may reach."""
    try:
        found = [host] if is_address(host) else await _resolve(network, host, port)
    except (OSError, TimeoutError, UnicodeError):
        return ChosenAddresses(problem="the host cannot be resolved")
    allowed = tuple(address for address in found if _may_dial(address, allows_private))[:MAX_ADDRESSES]
    if found and not allowed:
        return ChosenAddresses(
            problem=f"the host is at {found[0]}, which is not an address of the public internet",
            private=tuple(address for address in found if _may_dial(address, allows_private=True)),
        )
    return ChosenAddresses(addresses=allowed, problem="" if allowed else "the host has no address")


async def dial(network: Network, addresses: Sequence[str], port: int) -> socket.socket:
    """Connect to the first address that answers. Raises OSError."""
    problem: OSError = OSError("no address")
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await network.connect(address, port)
        except OSError as error:  # TimeoutError included
            problem = error
    raise problem


def is_address(host: str) -> bool:
    """Whether a canonical host is an address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_own_host(host: str) -> bool:
    """Whether a canonical host means the machine itself or a link-local service, however the policy judges it."""
    if not is_address(host):
        return host == "localhost" or host.endswith(".localhost")
    return not _may_dial(host, allows_private=True)


async def _resolve(network: Network, host: str, port: int) -> list[str]:
    async with asyncio.timeout(RESOLVE_SECONDS):
        found = await network.resolve(host, port)
    return [
        address for text in found if (address := canonical_host(text)) is not None and is_address(address)
    ]


def _may_dial(text: str, allows_private: bool) -> bool:
    """Whether an address is public, or in a private network that was allowed. Loopback and link-local never are."""
    address = ipaddress.ip_address(text)
    if is_public_address(address):
        return True
    is_private = any(
        address in network for network in _PRIVATE_NETWORKS if network.version == address.version
    )
    return allows_private and is_private and address not in _METADATA
