"""The init process of a copy sandbox: starts programs confined by Landlock and seccomp, without namespaces.

It is run, never imported by the host. It is a subreaper, so that it finds every process when the host is gone.
"""

import os
import socket

from holdfast.commands.init import syscalls
from holdfast.commands.init.init_main import receive, serve
from holdfast.commands.init.requests import Requests
from holdfast.commands.init.runs import Runs
from holdfast.commands.init.watch import Watch


def main() -> None:
    """Serve the host; exits the process."""
    host = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    syscalls.control(syscalls.SET_SUBREAPER, 1)
    syscalls.control(syscalls.SET_DUMPABLE, 0)
    configuration, _ = receive(host)
    if not configuration:
        os._exit(0)
    without = frozenset(configuration["without"])
    runs = Runs(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    watch = Watch(
        runs,
        memory_mb=configuration["memory_mb"],
        disk_mb=configuration["disk_mb"],
        processes=configuration["processes"],
        layers=configuration["workspace"],
        in_memory=[],
        without=without,
    )
    requests = Requests(
        runs,
        overlays=[],
        workspace=configuration["workspace"],
        writable=configuration["writable"],
        readable=configuration["readable"],
        without=without,
    )
    serve(host, requests, runs, watch)
