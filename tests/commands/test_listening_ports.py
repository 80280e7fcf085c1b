"""The ports on which programs listen are found by socket diagnostics, and by /proc where the kernel has none."""

import os
import socket

from holdfast.commands.init.listening_ports import from_files, from_kernel


def test_both_ways_find_the_ports_that_listen_and_no_other() -> None:
    six = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("", 0), family=six) as everywhere,
        socket.create_connection(server.getsockname()) as connected,
    ):
        ports = {os.fstat(each.fileno()).st_ino: each.getsockname()[1] for each in (server, everywhere)}
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        try:
            for found in (from_kernel(), from_files(processes)):
                assert found.items() >= ports.items()
                assert os.fstat(connected.fileno()).st_ino not in found
        finally:
            os.close(processes)
