"""The TCP ports on which somebody listens in this network namespace, by the number of the socket.

The kernel's socket diagnostics (`sock_diag`) list listening sockets alone. /proc/net/tcp walks the table of all connections
of the machine, which takes milliseconds at each look; it is read where the kernel has no diagnostics.
"""

import os
import socket
import struct

_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_SOCKET_DIAGNOSTICS, _BY_FAMILY, _DUMP, _ERROR, _DONE = 4, 20, 0x301, 2, 3
_LISTEN = 10
_PORT, _NUMBER = struct.Struct("!4xH"), struct.Struct("=68xI")
_MAX_ANSWER = 64 << 10
_MAX_FILE = 64 << 10


def listening_ports(processes: int) -> "dict[int, int]":
    """The ports by the numbers of their sockets; `processes` is a descriptor of /proc."""
    try:
        return from_kernel()
    except OSError:
        return from_files(processes)


def from_kernel() -> "dict[int, int]":
    """Ask the kernel's socket diagnostics. Raises OSError."""
    found: dict[int, int] = {}
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCKET_DIAGNOSTICS
    ) as kernel:
        for family in (socket.AF_INET, socket.AF_INET6):
            body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << _LISTEN)
            kernel.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _DUMP, 0, 0) + body)
            while _read_answer(kernel.recv(_MAX_ANSWER), found):
                pass
    return found


def _read_answer(answer: bytes, found: "dict[int, int]") -> bool:
    """Add the sockets of one datagram; False after the last one. Raises OSError."""
    while answer:
        length, kind, *_ = _HEADER.unpack_from(answer)
        if kind == _DONE:
            return False
        if kind == _ERROR:
            raise OSError("the kernel has no socket diagnostics")
        found[_NUMBER.unpack_from(answer, _HEADER.size)[0]] = _PORT.unpack_from(answer, _HEADER.size)[0]
        answer = answer[(length + 3) & ~3 :]
    return True


def from_files(processes: int) -> "dict[int, int]":
    """Read /proc/net through a descriptor of /proc."""
    found = {}
    for name in ("1/net/tcp", "1/net/tcp6"):
        for line in _read(processes, name).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and int(fields[3], 16) == _LISTEN:
                found[int(fields[9])] = int(fields[1].rpartition(":")[2], 16)
    return found


def _read(processes: int, path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
    except OSError:
        return ""
    with open(descriptor, encoding="ascii", errors="replace") as file:
        return file.read(_MAX_FILE)
