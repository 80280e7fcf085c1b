"""One message to a claude member, the store's share of it, and the memory of a member.

Turns: through the broker with a warm member, directly to the warm program, and with a start each. All use the local stub
of the Messages API and run in rounds, so that load on the machine affects all of them alike. No peer is installed; the
program comes with claude-agent-sdk==0.2.182 and is fetched as the tests do.

Store: compared with the figures measured for iris-mcp 0.3.2 (SQLite, WAL, synchronous=NORMAL), which does not run from
its package. Ours syncs to disk before it returns.
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
from tests.teams import claude_program as claude
from tests.teams import goose_program as goose
from tests.teams.goose_program import goose_roster
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import roster, team_broker
from tests.teams.test_claude import claude_roster, environ

from holdfast.core import JsonObject, Principal, Returned, SystemClock
from holdfast.store import Home, open_store
from holdfast.teams import Pair, Roster, TeamMessage
from holdfast.teams.claude.agent import ClaudeAgent

ROUNDS = int(os.environ.get("ROUNDS", "10"))
PAIRS = int(os.environ.get("PAIRS", "2000"))


async def _allow(tool: str, arguments: JsonObject) -> Returned:
    return Returned()


def _message() -> TeamMessage:
    return TeamMessage(id=str(uuid4()), text="hi", sender="alpha", principal=Principal("team:alpha"))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1000


async def measure(folder: Path) -> dict[str, list[float]]:
    """Milliseconds of each variant, round by round."""
    clock = SystemClock()
    home = Home(folder / "home")
    home.prepare()
    store = await open_store(home, clock=clock)
    times: dict[str, list[float]] = {"program, warm": [], "pooled, warm": [], "a start each": []}
    async with StubServer(respond, size=1000) as stub:
        team_roster = claude_roster(folder / "p")
        direct = ClaudeAgent(
            team=team_roster.team("beta"),
            folder=folder / "straight",
            environ=environ(stub),
            silence_seconds=60,
        )
        await direct.open(None)
        async with team_broker(
            folder, team_roster, store=store, clock=clock, environ=environ(stub)
        ) as broker:
            await broker.ask("alpha", "beta", "warm up")
            await direct.ask(_message(), _allow)

            async def cold() -> None:
                await broker.ask("beta", "alpha", "hi")

            for _ in range(ROUNDS):
                times["program, warm"].append(await _timed(lambda: direct.ask(_message(), _allow)))
                times["pooled, warm"].append(await _timed(lambda: broker.ask("alpha", "beta", "hi")))
                await broker.sleep("beta", "alpha")
                times["a start each"].append(await _timed(cold))
        await direct.close()
    await store.close()
    return times


async def measure_store(folder: Path) -> dict[str, float]:
    """Operations per second, and milliseconds of a list."""
    clock = SystemClock()
    home = Home(folder / "home-store")
    home.prepare()
    store = await open_store(home, clock=clock)
    (folder / "q").mkdir()
    team_roster = roster("alpha", "beta", project=str(folder / "q"))
    pairs = [Pair(sender="alpha", receiver="beta", thread=f"t{n}") for n in range(PAIRS)]
    figures: dict[str, float] = {}
    async with team_broker(folder / "store", team_roster, store=store, clock=clock) as broker:

        async def create(pair: Pair) -> None:
            await broker.conversations.ensure(pair)

        figures["create, one by one"] = _rate(200, await _timed(lambda: _each(create, pairs[:200])))
        figures["create, 50 at once"] = _rate(
            PAIRS - 200, await _timed(lambda: _in_batches(create, pairs[200:], 50))
        )
        figures["find a pair"] = _rate(
            1000,
            await _timed(lambda: _each(lambda pair: store.summary(broker.session_id(pair)), pairs[:1000])),
        )
        figures["one message, store and gate only"] = _rate(
            200, await _timed(lambda: _each(lambda _: broker.ask("alpha", "beta", "hi"), pairs[:200]))
        )
        figures[f"list {PAIRS}, ms"] = await _timed(broker.sessions)
        figures[f"list 50 of {PAIRS}, ms"] = await _timed(lambda: broker.sessions(limit=50))
    await store.close()
    return figures


async def measure_memory(folder: Path) -> dict[str, float]:
    """MiB of each kind of member after one turn: of its processes, or the growth of our own process.

    Holdfast sessions come first: later they would reuse memory that other members freed.
    """
    figures: dict[str, float] = {}
    clock = SystemClock()
    (folder / "m").mkdir()
    own = roster(
        "alpha", "beta", project=str(folder / "m"), member="holdfast", settings={"max_processes": 100}
    )
    async with team_broker(folder / "own", own, clock=clock) as broker:
        await broker.ask("alpha", "beta", "hi")
        before_mib = _resident(os.getpid())
        for n in range(50):
            await broker.ask("alpha", "beta", "hi", thread=f"t{n}")
        figures["Holdfast session"] = (_resident(os.getpid()) - before_mib) / 50
    async with StubServer(respond) as stub:
        for kind, team_roster in (
            ("claude", claude_roster(folder / "m")),
            ("goose over ACP", _goose(folder / "m", stub)),
        ):
            if team_roster is None:
                continue
            before = _children()
            async with team_broker(folder / kind, team_roster, clock=clock, environ=environ(stub)) as broker:
                await broker.ask("alpha", "beta", "hi")
                figures[kind] = sum(_resident(pid) for pid in _children() - before)
    return figures


def _goose(project: Path, stub: StubServer) -> Roster | None:
    return goose_roster(project, stub) if goose.PROGRAM.exists() else None


async def _each(work: Callable[[Pair], Awaitable[object]], pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        await work(pair)


async def _in_batches(work: Callable[[Pair], Awaitable[object]], pairs: Sequence[Pair], batch: int) -> None:
    for start in range(0, len(pairs), batch):
        await asyncio.gather(*(work(pair) for pair in pairs[start : start + batch]))


def _rate(count: int, milliseconds: float) -> float:
    return count / milliseconds * 1000


def _children() -> set[int]:
    """All descendants of this process."""
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
    """Proportional memory of a process in MiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


IRIS = {
    "create, one by one": "4,000/s",
    "find a pair": "22,800/s",
    "one message, store and gate only": "270/s (store part alone)",
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
    print(f"{'variant':<34} {'best ms':>9} {'median ms':>10} {'ratio':>7}")
    for variant, taken in times.items():
        middle = statistics.median(taken)
        print(f"{variant:<34} {min(taken):>9.1f} {middle:>10.1f} {middle / base:>7.2f}")
    print(f"\n{'store':<34} {'ours':>12}   iris-mcp")
    for what, figure in store.items():
        unit = "ms" if what.endswith("ms") else "/s"
        peer = next((figure for name, figure in reversed(IRIS.items()) if what.startswith(name)), "-")
        print(f"{what.removesuffix(', ms'):<34} {figure:>9,.1f} {unit}   {peer}")
    print(f"\n{'member':<34} {'MiB':>9}")
    for kind, mib in memory.items():
        print(f"{kind:<34} {mib:>9.2f}")


if __name__ == "__main__":
    main()
