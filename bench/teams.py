"""One message to a claude member, the store's part in it, and what a member takes in memory.

Turns: through the switchboard while the member is warm, straight to the warm program, and with a start each. All go to the stub
of the Messages API on this machine, in rounds, so that a busy machine is busy for all ways. Peers: none to install; the program
comes with claude-agent-sdk==0.2.182 and is fetched as the tests do.

Store: beside the figures measured for iris-mcp 0.3.2 (SQLite, WAL, synchronous=NORMAL), which does not run from its package;
ours sync to the disk before they return.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import uuid4

from tests.support.provider_stub import StubServer
from tests.teams import goose
from tests.teams import installed as claude
from tests.teams.brain import respond
from tests.teams.companies import company, roster
from tests.teams.goose import of_goose
from tests.teams.test_claude import environ, of_claude

from holdfast.core import JsonObject, Principal, Returned, SystemClock
from holdfast.store import Home, open_store
from holdfast.teams import Pair, Roster, TeamMessage
from holdfast.teams.claude.agent import ClaudeAgent

ROUNDS = int(os.environ.get("ROUNDS", "10"))
PAIRS = int(os.environ.get("PAIRS", "2000"))


async def _allow(tool: str, arguments: JsonObject) -> Returned:
    return Returned()


def _letter() -> TeamMessage:
    return TeamMessage(id=str(uuid4()), text="hi", sender="alpha", principal=Principal("team:alpha"))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return (time.perf_counter() - begun) * 1000


async def measure(folder: Path) -> dict[str, list[float]]:
    """Milliseconds of each way, round by round."""
    clock = SystemClock()
    home = Home(folder / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    times: dict[str, list[float]] = {"program, warm": [], "pooled, warm": [], "a start each": []}
    async with StubServer(respond, size=1000) as stub:
        on = of_claude(folder / "p")
        straight = ClaudeAgent(
            team=on.team("beta"), folder=folder / "straight", environ=environ(stub), silence_seconds=60
        )
        await straight.open(None)
        async with company(folder, on, store=store, clock=clock, environ=environ(stub)) as board:
            await board.ask("alpha", "beta", "warm up")
            await straight.ask(_letter(), _allow)

            async def cold() -> None:
                await board.ask("beta", "alpha", "hi")

            for _ in range(ROUNDS):
                times["program, warm"].append(await _timed(lambda: straight.ask(_letter(), _allow)))
                times["pooled, warm"].append(await _timed(lambda: board.ask("alpha", "beta", "hi")))
                await board.sleep("beta", "alpha")
                times["a start each"].append(await _timed(cold))
        await straight.close()
    await store.close()
    return times


async def measure_store(folder: Path) -> dict[str, float]:
    """Operations a second, and milliseconds of a list."""
    clock = SystemClock()
    home = Home(folder / "home-store")
    home.prepare()
    store = await open_store(home, clock=clock)
    (folder / "q").mkdir()
    on = roster("alpha", "beta", project=str(folder / "q"))
    pairs = [Pair(sender="alpha", receiver="beta", thread=f"t{n}") for n in range(PAIRS)]
    took: dict[str, float] = {}
    async with company(folder / "store", on, store=store, clock=clock) as board:

        async def begin(pair: Pair) -> None:
            await board.conversations.ensure(pair)

        took["create, one by one"] = _rate(200, await _timed(lambda: _each(begin, pairs[:200])))
        took["create, 50 at once"] = _rate(
            PAIRS - 200, await _timed(lambda: _at_once(begin, pairs[200:], 50))
        )
        took["find a pair"] = _rate(
            1000, await _timed(lambda: _each(lambda pair: store.summary(board.key(pair)), pairs[:1000]))
        )
        took["one letter, store and gate only"] = _rate(
            200, await _timed(lambda: _each(lambda _: board.ask("alpha", "beta", "hi"), pairs[:200]))
        )
        took[f"list {PAIRS}, ms"] = await _timed(board.sessions)
        took[f"list 50 of {PAIRS}, ms"] = await _timed(lambda: board.sessions(limit=50))
    await store.close()
    return took


async def measure_memory(folder: Path) -> dict[str, float]:
    """MiB of each kind of member after one turn: of its processes, or what our own process grew by.

    Our own sessions come first of all: later they would move into memory that others have given back.
    """
    took: dict[str, float] = {}
    clock = SystemClock()
    (folder / "m").mkdir()
    own = roster(
        "alpha", "beta", project=str(folder / "m"), member="holdfast", settings={"max_processes": 100}
    )
    async with company(folder / "own", own, clock=clock) as board:
        await board.ask("alpha", "beta", "hi")
        before_mib = _resident(os.getpid())
        for n in range(50):
            await board.ask("alpha", "beta", "hi", thread=f"t{n}")
        took["our own session"] = (_resident(os.getpid()) - before_mib) / 50
    async with StubServer(respond) as stub:
        for kind, on in (("claude", of_claude(folder / "m")), ("goose over ACP", _goose(folder / "m", stub))):
            if on is None:
                continue
            before = _children()
            async with company(folder / kind, on, clock=clock, environ=environ(stub)) as board:
                await board.ask("alpha", "beta", "hi")
                took[kind] = sum(_resident(pid) for pid in _children() - before)
    return took


def _goose(project: Path, stub: StubServer) -> Roster | None:
    return of_goose(project, stub) if goose.PROGRAM.exists() else None


async def _each(work: Callable[[Pair], Awaitable[object]], pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        await work(pair)


async def _at_once(work: Callable[[Pair], Awaitable[object]], pairs: Sequence[Pair], crowd: int) -> None:
    for start in range(0, len(pairs), crowd):
        await asyncio.gather(*(work(pair) for pair in pairs[start : start + crowd]))


def _rate(count: int, milliseconds: float) -> float:
    return count / milliseconds * 1000


def _children() -> set[int]:
    """Every process below us."""
    parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    found, known = set[int](), {os.getpid()}
    while fresh := {pid for pid, parent in parents.items() if parent in known} - found:
        found |= fresh
        known = fresh
    return found


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def _resident(pid: int) -> float:
    """MiB that a process has to itself, its part of what it shares included."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


IRIS = {
    "create, one by one": "4,000/s",
    "find a pair": "22,800/s",
    "one letter, store and gate only": "270/s (store part alone)",
    "list": "12 ms for 1,000, 98 ms for 10,000",
    "list 50": "8.5 ms of 10,000",
}


def main() -> None:
    """Print the tables."""
    claude.install()
    goose.install()
    with tempfile.TemporaryDirectory() as folder:
        memory = asyncio.run(measure_memory(Path(folder)))
        times = asyncio.run(measure(Path(folder)))
        store = asyncio.run(measure_store(Path(folder)))
    base = statistics.median(times["program, warm"])
    print(f"{'way':<34} {'best ms':>9} {'median ms':>10} {'ratio':>7}")
    for way, taken in times.items():
        middle = statistics.median(taken)
        print(f"{way:<34} {min(taken):>9.1f} {middle:>10.1f} {middle / base:>7.2f}")
    print(f"\n{'store':<34} {'ours':>12}   iris-mcp")
    for what, figure in store.items():
        unit = "ms" if what.endswith("ms") else "/s"
        peer = next((told for name, told in reversed(IRIS.items()) if what.startswith(name)), "-")
        print(f"{what.removesuffix(', ms'):<34} {figure:>9,.1f} {unit}   {peer}")
    print(f"\n{'member':<34} {'MiB':>9}")
    for kind, mib in memory.items():
        print(f"{kind:<34} {mib:>9.2f}")


if __name__ == "__main__":
    main()
