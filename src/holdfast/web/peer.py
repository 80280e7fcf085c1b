"""The user behind a connection from this machine, as the kernel lists it. Only our own user may enter."""

import ipaddress
import os
import socket
from pathlib import Path

_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}


def is_own_peer(client: tuple[str, int] | None, port: int) -> bool:
    """Whether our own user opened a connection to a port of this machine. False if the kernel does not list it."""
    if client is None:
        return True  # an application in memory, without a socket
    uid = peer_uid(client[0], client[1], port)
    return uid is not None and uid == os.geteuid()


def peer_uid(host: str, client_port: int, port: int) -> int | None:
    """The user whose socket is connected from a port to ours; None if there is none, as from another machine."""
    address = ipaddress.ip_address(host)
    wanted_local = f"{_kernel_form(address)}:{client_port:04X}"
    wanted_remote = f":{port:04X}"
    try:
        lines = _TABLES[address.version].read_text().splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if fields[1] == wanted_local and fields[2].endswith(wanted_remote):
            return int(fields[7])
    return None


def _kernel_form(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """An address as the kernel writes it: words of 32 bits in the byte order of the machine."""
    packed = address.packed
    words = [packed[place : place + 4] for place in range(0, len(packed), 4)]
    return "".join(f"{socket.ntohl(int.from_bytes(word, 'big')):08X}" for word in words)
