"""The process that forks every worker. It loads engine and component once, so that a worker starts in milliseconds.

It has no environment, one thread and no data of any session. For each worker the host sends it two sockets: one for the worker, and
one on which the zygote reports the worker's pidfd and, when the worker has ended, its exit status.
"""

import contextlib
import gc
import os
import resource
import selectors
import signal
import socket
from typing import NoReturn

import holdfast.guests.wasi.frames as frames
import holdfast.guests.wasi.worker_main as worker_main
import holdfast.process.privileges as privileges

READY = b"+"


def main(control_descriptor: int, image_descriptor: int) -> NoReturn:
    """Fork a worker for every pair of sockets that arrives. Ends when the host closes its socket."""
    control = socket.socket(fileno=control_descriptor)
    try:
        image = worker_main.Image(f"/proc/self/fd/{image_descriptor}")
        os.close(image_descriptor)
    except Exception as problem:
        control.send(f"{type(problem).__name__}: {problem}".encode()[:1000])
        os._exit(1)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.collect()
    gc.freeze()  # a collection in a worker would copy the pages that all workers share
    control.send(READY)
    _Zygote(image, control).serve()


class _Zygote:
    def __init__(self, image: worker_main.Image, control: socket.socket) -> None:
        self._image = image
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._workers: dict[int, tuple[int, socket.socket]] = {}
        """Process and report socket of each worker, by its pidfd."""

    def serve(self) -> NoReturn:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._control:
                    self._start()
                else:
                    self._report(key.fd)

    def _start(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if not message:
            os._exit(0)  # every worker dies with the zygote
        if len(descriptors) != 2:  # too many open files; the host sees its end close
            for descriptor in descriptors:
                os.close(descriptor)
            return
        connection, report = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        zygote = os.getpid()
        try:
            process = os.fork()
        except OSError:
            connection.close()
            report.close()
            return
        if process == 0:
            report.close()
            self._become_worker(connection, zygote)
        connection.close()
        handle = os.pidfd_open(process)
        with contextlib.suppress(OSError):  # the host may have closed its end already
            socket.send_fds(report, [READY], [handle])
        self._workers[handle] = process, report
        self._selector.register(handle, selectors.EVENT_READ)

    def _become_worker(self, connection: socket.socket, zygote: int) -> NoReturn:
        """In the fork: close the descriptors of other sessions, then serve."""
        try:
            privileges.die_with_parent(zygote)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._selector.close()
            self._control.close()
            for handle, (_, report) in self._workers.items():
                os.close(handle)
                report.close()
            worker_main.serve(self._image, connection)
        except BaseException as problem:
            reason = f"{type(problem).__name__}: {problem}"
            with contextlib.suppress(OSError):
                connection.sendall(frames.pack(frames.Trapped(reason=reason, steps=0)))
        finally:
            os._exit(1)

    def _report(self, handle: int) -> None:
        process, report = self._workers.pop(handle)
        self._selector.unregister(handle)
        os.close(handle)
        _, status = os.waitpid(process, 0)
        with contextlib.suppress(OSError):
            report.send(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        report.close()
