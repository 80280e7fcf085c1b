"""What the host asks of the init process: one handler for each operation of the protocol.

A request is a JSON object with `op` and `id`, descriptors beside it. The reply repeats the id as `re`; a failure has `error`.
"""

import os
import socket

from holdfast.commands.init import beneath
from holdfast.commands.init.overlays import OverlayMount
from holdfast.commands.init.runs import Runs
from holdfast.commands.init.supervisor import Program

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as all the rest
if TYPE_CHECKING:
    # Any: a request is JSON from the host, which built it from typed values.
    from typing import Any

    Request = dict[str, Any]

_LOOPBACK, _LOOPBACK_6 = b"127.0.0.1", b"::1"
"""As bytes: for a text Python loads a codec, and its own files may not be visible in the sandbox."""
_BACKLOG = 128
_CHUNK = 1 << 20
_LINK_MODE = 0o120000


class RequestResult:
    """The answer to a request: fields, and descriptors that go with it and are closed here afterwards."""

    def __init__(
        self, fields: "dict[str, object] | None" = None, descriptors: "tuple[int, ...]" = ()
    ) -> None:
        self.fields = fields or {}
        self.descriptors = descriptors


class Requests:
    """Carries out the requests of the host."""

    def __init__(
        self,
        runs: Runs,
        *,
        overlays: "list[OverlayMount]",
        workspace: str,
        writable: "list[str]",
        without: "frozenset[str]",
        readable: "list[str] | None" = None,
    ) -> None:
        self._runs = runs
        self._overlays = overlays
        self._workspace = workspace
        self._writable = writable
        self._without = without
        self._readable = readable
        self._ports: list[int] = []

    def handle(self, request: "Request", descriptors: "list[int]") -> RequestResult:
        """Carry out one request. Raises OSError."""
        match request["op"]:
            case "run":
                return self._run(request, descriptors)
            case "signal":
                return self._signal(request["run"], request["number"])
            case "stop":
                return self._stop(request["run"])
            case "terminal":
                return _open_terminal()
            case "listen":
                return self._listen(request["port"])
            case "connect" if self._readable is None:
                return _connect(request["port"])
            case "unmount":
                return self._unmount()
            case "mount":
                return self._mount()
            case "refresh":
                return self._refresh()
            case "put":
                return self._put(request["path"], request["mode"], descriptors)
            case "freeze":
                self._runs.freeze()
                return RequestResult()
            case "thaw":
                self._runs.thaw()
                return RequestResult()
            case other:
                raise OSError(f"this sandbox cannot {other}")

    def _run(self, request: "Request", descriptors: "list[int]") -> RequestResult:
        command = Program(
            argv=request["argv"],
            cwd=request["cwd"],
            environment=request["environment"],
            has_terminal=request["has_terminal"],
            limits=request["limits"],
            umask=request["umask"],
            writable=self._writable,
            readable=self._readable,
            ports=tuple(self._ports),
            without=self._without,
        )
        *given, output = descriptors
        stdin = given[0] if given else os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._runs.start(request["id"], command, [stdin, output, output])
        finally:
            if not given:
                os.close(stdin)
        return RequestResult()

    def _listen(self, port: int) -> RequestResult:
        listening = socket.create_server((_LOOPBACK, port), backlog=_BACKLOG)
        number = listening.getsockname()[1]
        self._ports.append(number)
        return RequestResult({"port": number}, (listening.detach(),))

    def _signal(self, id: int, number: int) -> RequestResult:
        run = self._runs.find(id)
        if run is not None:
            run.send(number)
        return RequestResult()

    def _stop(self, id: int) -> RequestResult:
        run = self._runs.find(id)
        if run is not None:
            run.stop()
        return RequestResult()

    def _unmount(self) -> RequestResult:
        if self._runs:
            raise OSError("a command runs: each has its own copy of the mounts")
        for overlay in self._overlays:
            overlay.unmount()
        return RequestResult()

    def _mount(self) -> RequestResult:
        for overlay in self._overlays:
            overlay.mount()
        return RequestResult()

    def _refresh(self) -> RequestResult:
        for overlay in self._overlays:
            overlay.refresh()
        return RequestResult()

    def _put(self, path: str, mode: int, descriptors: "list[int]") -> RequestResult:
        top = os.open(self._workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if descriptors:
                content = b"".join(iter(lambda: os.read(descriptors[0], _CHUNK), b""))
                if mode == _LINK_MODE:
                    beneath.write_link(top, path, os.fsdecode(content))
                else:
                    beneath.write_file(top, path, content, mode)
            else:
                beneath.remove(top, path)
        finally:
            os.close(top)
        return RequestResult()


def _open_terminal() -> RequestResult:
    return RequestResult(descriptors=os.openpty())


def _connect(port: int) -> RequestResult:
    try:
        connection = _connected(socket.AF_INET, _LOOPBACK, port)
    except ConnectionRefusedError as refused:
        try:
            connection = _connected(socket.AF_INET6, _LOOPBACK_6, port)  # node listens there for `localhost`
        except OSError:
            raise refused from None
    return RequestResult(descriptors=(connection.detach(),))


def _connected(family: int, host: bytes, port: int) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.connect((host, port))
    except OSError:
        connection.close()
        raise
    return connection
