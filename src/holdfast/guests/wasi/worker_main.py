"""A worker process: one guest of one session in WebAssembly, driven over a socket. Runs in a fork of the zygote."""

import contextlib
import hashlib
import os
import signal
import socket
from typing import Any, NoReturn

import wasmtime
from wasmtime import component as components

import holdfast.guests.wasi.frames as frames
import holdfast.guests.wasi.wasmtime_config as wasmtime_config
import holdfast.process.confine_worker as confine_worker

_FOLDERS = ("/workspace", "/app")
_WASI_VERSIONS = [f"0.2.{patch}" for patch in range(13)]
"""The version that the component imports depends on componentize-py; names that it does not import have no effect."""
_NANOSECONDS = 1_000_000_000
_TICK_NANOSECONDS = 1_000
"""How far the clock moves each time it is read. It is a counter, so that a second run sees the same times."""
_TRAP_STATUS = 3


class _Datetime:
    """The WASI record `datetime`."""

    def __init__(self, nanoseconds: int) -> None:
        self.seconds, self.nanoseconds = divmod(nanoseconds, _NANOSECONDS)


class Image:
    """The compiled component, loaded once in the zygote and shared with every worker."""

    def __init__(self, path: str) -> None:
        self.engine = wasmtime_config.engine()
        self.component = components.Component.deserialize_file(self.engine, path)


def serve(image: Image, connection: socket.socket) -> NoReturn:
    """Serve one session until the host closes the connection."""
    with contextlib.suppress(EOFError, ConnectionError):
        setup = frames.receive(connection)
        assert isinstance(setup, frames.Setup)
        guest = _Guest(image, setup, connection)
        connection.sendall(frames.pack(frames.Ready(notes=guest.notes)))
        while True:
            request = frames.receive(connection)
            assert isinstance(request, frames.Execute)
            connection.sendall(frames.pack(guest.execute(request)))
            if guest.is_trapped:
                os._exit(_TRAP_STATUS)
    os._exit(0)


class _Guest:
    """The WebAssembly instance, and the four host functions that it can call."""

    def __init__(self, image: Image, setup: frames.Setup, connection: socket.socket) -> None:
        self._connection = connection
        self._random = _SeededRandom(0)
        self._now_nanoseconds = 0
        self.is_trapped = False
        self._store = wasmtime.Store(image.engine)
        self._store.set_limits(memory_size=setup.memory_bytes)
        self._store.set_fuel(2**62)
        access = wasmtime.WasiConfig()
        for folder in _FOLDERS:
            access.preopen_dir(setup.workspace, folder)
        self._store.set_wasi(access)
        # Before the instance exists: the first file operation of WASI starts threads, which inherit the restrictions.
        self.notes = confine_worker.confine_to_folder(setup.workspace, file_bytes=setup.file_bytes)
        try:
            instance = self._linker(image.engine).instantiate(self._store, image.component)
        except wasmtime.WasmtimeError as problem:
            connection.sendall(frames.pack(frames.Trapped(reason=_last_line(problem), steps=0)))
            os._exit(_TRAP_STATUS)
        handle = instance.get_func(self._store, "handle")
        assert handle is not None
        self._handle = handle

    def execute(self, request: frames.Execute) -> frames.Finished | frames.Trapped:
        """Pass one request to the guest and wait until it ends."""
        self._random = _SeededRandom(request.seed)
        self._now_nanoseconds = request.now_ms * 1_000_000
        self._store.set_limits(memory_size=request.memory_bytes)
        self._store.set_fuel(request.steps)
        # SIGPROF kills the process: the kernel counts its processor time, and no code in it can prevent that.
        signal.setitimer(signal.ITIMER_PROF, max(request.seconds, 1e-6))
        try:
            response = self._handle(self._store, request.request)
            return frames.Finished(response=response, steps=request.steps - self._store.get_fuel())
        except wasmtime.ExitTrap:  # WASI reports only success or failure, not the exit code
            self.is_trapped = True
            return frames.Trapped(reason=frames.EXITED, steps=request.steps - self._store.get_fuel())
        except wasmtime.WasmtimeError as problem:
            self.is_trapped = True
            return frames.Trapped(reason=_last_line(problem), steps=request.steps - self._store.get_fuel())
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _linker(self, engine: wasmtime.Engine) -> components.Linker:
        linker = components.Linker(engine)
        linker.add_wasip2()
        linker.allow_shadowing = True
        with linker.root() as root:
            root.add_func("call-host", self._call_host)
            root.add_func("show", self._show)
            root.add_func("slept", self._slept)
            root.add_func("writing", self._writing)
            for version in _WASI_VERSIONS:
                with root.add_instance(f"wasi:random/random@{version}") as random:
                    random.add_func("get-random-bytes", lambda _, length: self._random.take(length))
                    random.add_func("get-random-u64", lambda _: int.from_bytes(self._random.take(8), "big"))
                with root.add_instance(f"wasi:clocks/wall-clock@{version}") as clock:
                    clock.add_func("now", self._now)
                    clock.add_func("resolution", lambda _: _Datetime(_TICK_NANOSECONDS))
        return linker

    def _call_host(self, _: Any, request: str) -> str:
        self._connection.sendall(frames.pack(frames.Called(request=request)))
        frame = frames.receive(self._connection)
        assert isinstance(frame, frames.Answered)
        return frame.answer

    def _show(self, _: Any, text: str) -> None:
        self._connection.sendall(frames.pack(frames.Printed(text=text)))

    def _writing(self, _: Any, number: int, path: str) -> None:
        self._connection.sendall(frames.pack(frames.Writing(number=number, path=path)))

    def _slept(self, _: Any, nanoseconds: int) -> None:
        self._now_nanoseconds += nanoseconds

    def _now(self, _: Any) -> _Datetime:
        self._now_nanoseconds += _TICK_NANOSECONDS
        return _Datetime(self._now_nanoseconds)


class _SeededRandom:
    """Random bytes from a seed, so that a second run draws the same numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = str(seed).encode()
        self._drawn = 0

    def take(self, length: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(b"%d:%s" % (self._drawn, self._seed)).digest(length)


def _last_line(problem: wasmtime.WasmtimeError) -> str:
    """Why the engine stopped the guest. The lines above it list WebAssembly functions."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1][:500] if lines else "unknown"
