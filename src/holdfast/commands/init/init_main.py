"""The init process of a sandbox: builds its namespaces and its root, then serves the host until the host is gone.

It is run, never imported by the host: standard input is a socket to the host, over which its configuration comes. It keeps
its capabilities, which hold in its own user namespace only, and programs can neither trace nor signal it. When it ends, the
kernel kills every process of the sandbox.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import struct
import time
from fcntl import ioctl

from holdfast.commands.init import root, syscalls
from holdfast.commands.init.overlays import OverlayMount
from holdfast.commands.init.requests import Requests
from holdfast.commands.init.runs import Runs
from holdfast.commands.init.watch import INTERVAL_MS, Watch
from holdfast.process.privileges import die_with_parent

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as all the rest
if TYPE_CHECKING:
    # Any: the configuration is JSON from the host, which built it from typed values.
    from typing import Any

    Configuration = dict[str, Any]

_MAX_MESSAGE = 1 << 20
_MAX_DESCRIPTORS = 8
_SET_INTERFACE_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def main() -> None:
    """Build the sandbox and serve it; exits the process."""
    host = socket.socket(fileno=os.dup(0))
    parent = os.getppid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    die_with_parent(parent)
    try:
        configuration, _ = receive(host)
        _enter_namespaces(configuration)
        first = os.fork()
        if first:
            host.close()
            os.waitpid(first, 0)
            os._exit(0)
        die_with_parent(os.getppid())
        os.setsid()
        requests, runs, watch = _build(configuration)
    except Exception as error:
        _send(host, {"error": f"{error}"})
        os._exit(1)
    serve(host, requests, runs, watch)


def _enter_namespaces(configuration: "Configuration") -> None:
    without = configuration["without"]
    user, group = os.geteuid(), os.getegid()
    namespaces = (
        syscalls.NEW_USER | syscalls.NEW_MOUNTS | syscalls.NEW_PIDS | syscalls.NEW_UTS | syscalls.NEW_CGROUP
    )
    if "network-namespace" not in without:
        namespaces |= syscalls.NEW_NETWORK
    if "ipc-namespace" not in without:
        namespaces |= syscalls.NEW_IPC
    syscalls.unshare(namespaces)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _build(configuration: "Configuration") -> "tuple[Requests, Runs, Watch]":
    without = frozenset(configuration["without"])
    syscalls.control(syscalls.SET_DUMPABLE, 0)
    syscalls.set_host_name("sandbox")
    root.build(
        configuration["root"],
        read_only=configuration["read_only"],
        copied=configuration["copied"],
        links=configuration["links"],
        files=configuration["files"],
        empty_folders=configuration["empty_folders"],
        layers=configuration["layers"],
        temporary_mb=configuration["temporary_mb"],
        inotify_instances=configuration["inotify_instances"],
        without=without,
    )
    fixed = [OverlayMount(**each) for each in configuration["fixed_overlays"]]
    overlays = [OverlayMount(**each) for each in configuration["overlays"]]
    for overlay in (*fixed, *overlays):
        overlay.mount()
    if "network-namespace" not in without:
        start_loopback()
    runs = Runs(os.open(root.SYSTEM_PROCESSES, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    watch = Watch(
        runs,
        memory_mb=configuration["memory_mb"],
        disk_mb=configuration["disk_mb"],
        processes=configuration["processes"],
        layers=f"{root.LAYERS}/workspace-state",
        in_memory=["/tmp", "/dev/shm", "/run"],  # noqa: S108 - the sandbox's own
        without=without,
    )
    requests = Requests(
        runs,
        overlays=overlays,
        workspace=configuration["workspace"],
        writable=configuration["writable"],
        without=without,
    )
    return requests, runs, watch


def start_loopback() -> None:
    """Bring the loopback interface of this network namespace up. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("16sh22x", b"lo", _UP_AND_RUNNING))


def serve(host: socket.socket, requests: Requests, runs: Runs, watch: Watch) -> None:
    """Report that the sandbox is ready, and carry out requests until the host is gone; exits the process."""
    gc.freeze()  # so that supervisors, which are forked, do not copy what the collector would touch
    _send(host, {"ready": True})
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(host, select.POLLIN)
    poll.register(woken, select.POLLIN)
    checked_at = time.monotonic()
    while True:
        ready = poll.poll(INTERVAL_MS if runs else None)
        if runs and time.monotonic() - checked_at > INTERVAL_MS / 1000:
            watch.check()
            ports = runs.changed_ports()
            if ports is not None:
                _send(host, {"ports": ports})
            checked_at = time.monotonic()
        for descriptor, _ in ready:
            if descriptor == woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
                for result in runs.ended():
                    _send(host, result)
            else:
                if not runs:
                    watch.start()
                    checked_at = (
                        time.monotonic()
                    )  # the first check of a command is due after the interval, not at once
                if not _answer(host, requests):
                    if os.getpid() != 1:
                        runs.kill_all()
                    os._exit(0)


def _answer(host: socket.socket, requests: Requests) -> bool:
    """Carry out one request; False if the host is gone."""
    request, descriptors = receive(host)
    if not request:
        return False
    try:
        reply = requests.handle(request, descriptors)
    except OSError as error:
        _send(host, {"re": request["id"], "error": str(error), "errno": error.errno or 0})
        return True
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    _send(host, {"re": request["id"], **reply.fields}, reply.descriptors)
    for descriptor in reply.descriptors:
        os.close(descriptor)
    return True


def receive(host: socket.socket) -> "tuple[Configuration, list[int]]":
    """A message of the host and its descriptors; empty if the host is gone."""
    message, descriptors, _, _ = socket.recv_fds(host, _MAX_MESSAGE, _MAX_DESCRIPTORS)
    if not message:
        return {}, []
    request: Configuration = json.loads(message)
    if "large" in request:
        with open(descriptors.pop(0), "rb") as body:
            request = json.load(body)
    return request, descriptors


def _send(host: socket.socket, message: "dict[str, object]", descriptors: "tuple[int, ...]" = ()) -> None:
    data = json.dumps(message).encode()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        if descriptors:
            socket.send_fds(host, [data], list(descriptors))
        else:
            host.send(data)
