"""Runs the code of a session in the project's own Python, inside the command sandbox. It is sent there as text, never imported.

Nothing here protects the host: the untrusted code shares the interpreter and can change all of it, so the host checks every
reply. The syntax is that of old versions, so that each of them can say that it is too old.
"""

import base64
import contextlib
import gc
import json
import os
import resource
import signal
import socket
import sys
import types

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as all the rest
if TYPE_CHECKING:
    # Any: what the host sends is JSON, and the modules are loaded from text.
    from collections.abc import Callable
    from typing import Any

OLDEST = (3, 11)
STATE_SECONDS = 10
PACKAGE = "guest"  # saved variables refer to it by this name, as those of the WASI engine do


def main(sources: "dict[str, str]") -> None:
    """Take one request, run its code, send the reply and exit."""
    channel = _Channel(socket.socket(fileno=os.dup(0)))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if sys.version_info[:2] < OLDEST or sys.implementation.name != "cpython":
        found = "{} {}.{}".format(sys.implementation.name, *sys.version_info[:2])
        reason = f"code needs CPython 3.11 or newer, and the python3 of this project is {found}"
        channel.send({"kind": "unusable", "reason": reason})
        return
    guest = _load(sources)
    channel.send({"kind": "ready"})
    reply = _handle(channel.receive(), channel, guest)
    _flush()
    channel.send(reply)
    os._exit(0)  # threads of the code must not keep the process


class _Channel:
    """Messages to and from the host."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, message: "dict[str, object]") -> None:
        self._send(json.dumps(message).encode())

    def send_call(self, request: bytes) -> None:
        """Send a call, which is JSON already."""
        self._send(b'{"kind":"called","request":%b}' % request)

    def _send(self, content: bytes) -> None:
        self._connection.sendall(len(content).to_bytes(4, "big"))
        self._connection.sendall(content)

    def receive(self) -> "Any":
        return json.loads(self._exactly(int.from_bytes(self._exactly(4), "big")))

    def _exactly(self, length: int) -> bytes:
        content = bytearray()
        while len(content) < length:
            piece = self._connection.recv(min(1 << 20, length - len(content)))
            if not piece:
                os._exit(1)
            content += piece
        return bytes(content)


def _load(sources: "dict[str, str]") -> "Any":
    """The package of the modules that are shared with the WASI engine."""
    guest: Any = types.ModuleType(PACKAGE)
    guest.__path__ = []
    sys.modules[PACKAGE] = guest
    for name in ("entry", "stdlib", "written_files", "runner", "tools", "state"):
        module = types.ModuleType(PACKAGE + "." + name)
        module.__package__ = PACKAGE
        module.__file__ = f"/holdfast/{name}.py"
        sys.modules[module.__name__] = module
        setattr(guest, name, module)
        if name == "stdlib":
            guest.stdlib.run_coroutine = _run_coroutine
        exec(compile(sources.get(name, ""), module.__file__, "exec"), module.__dict__)  # noqa: S102 - our own source
    return guest


def _run_coroutine(coroutine: "Any") -> "Any":
    import asyncio

    return asyncio.run(coroutine)


def _handle(body: "Any", channel: _Channel, guest: "Any") -> "dict[str, object]":
    _limit(body["memory_bytes"], body["seconds"])
    guest.entry._call = _caller(channel, body["argument_bytes"])
    unfinished = _follow_files(guest.written_files)
    namespace = sys.modules["__main__"].__dict__
    namespace.clear()
    namespace.update({"__name__": "__main__", "__doc__": None, "__builtins__": __builtins__})
    saved = body["variables"]
    if saved["state"] and saved["python"] == sys.version:
        guest.state.load(base64.b64decode(saved["state"]), namespace)
    elif saved["state"]:
        print("[another version of Python made the variables of earlier runs, and they cannot be loaded]")
    for program in body["prelude"]:
        exec(program, namespace)  # noqa: S102 - defines variables of another engine
    tools = guest.tools.bind(body["tools"], guest.entry._call)
    # A variable of the code hides a tool of the same name.
    namespace.update({name: tool for name, tool in tools.items() if name not in namespace})
    signal.setitimer(signal.ITIMER_PROF, max(body["seconds"], 1e-6))
    result = guest.runner.run(
        body["code"], namespace, number=1, value_bytes=body["value_bytes"], lost=saved["lost"]
    )
    signal.setitimer(signal.ITIMER_PROF, STATE_SECONDS)
    for name, tool in tools.items():
        if namespace.get(name) is tool:
            del namespace[name]
    content, lost = guest.state.save(namespace, max_bytes=body["state_bytes"])
    if result.problem is None:
        # What CPython does when it exits: files that the code left open are written and closed.
        namespace.clear()
        gc.collect()
    guest.written_files.finish(result.problem)
    variables = {"state": base64.b64encode(content).decode(), "python": sys.version, "lost": lost}
    return {
        "kind": "finished",
        "status": result.status,
        "value": result.value,
        "error": result.error[: body["value_bytes"]],
        "variables": variables,
        "unfinished": sorted(set(unfinished.values())),
    }


def _follow_files(written_files: "Any") -> "dict[int, str]":
    """The files of the workspace that the code has open for writing; after the run, those that it did not finish."""
    unfinished = {}

    def report(number: int, path: str) -> None:
        if path:
            unfinished[number] = path
        else:
            unfinished.pop(number, None)

    written_files.folders = (os.getcwd() + "/",)
    written_files.report = report
    written_files.install()
    return unfinished


def _limit(memory_bytes: int, seconds: float) -> None:
    """Limit memory, and computing time beyond the timer: SIGPROF stops code that leaves it on."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
    most = int(seconds) + STATE_SECONDS + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _caller(channel: _Channel, argument_bytes: int) -> "Callable[[str], str]":
    """The function that tools call. Saved variables that are tools refer to it as `guest.entry._call`."""

    def call(request: str) -> str:
        content = request.encode()
        if len(content) > argument_bytes:
            raise ValueError(f"the arguments of this call have more than {argument_bytes >> 20} MB")
        _flush()
        channel.send_call(content)
        return json.dumps(channel.receive())

    call.__module__, call.__qualname__ = PACKAGE + ".entry", "_call"
    return call


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the code may have closed or replaced it
            stream.flush()
