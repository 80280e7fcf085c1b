"""One message to a claude member: through the switchboard while it is warm, straight to the warm program, and with a start each.

Peers: none to install; the program comes with claude-agent-sdk==0.2.182 and is fetched as the tests do.
All turns go to the stub of the Messages API on this machine, in rounds, so that a busy machine is busy for all ways.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

from tests.teams.brain import respond
from tests.teams.companies import company
from tests.teams.test_claude import environ, of_claude

from holdfast.core import JsonObject, Principal, Returned, SystemClock
from holdfast.models.stub import StubServer
from holdfast.store import EmbeddedStore, Home
from holdfast.teams import Letter
from holdfast.teams.claude.agent import ClaudeAgent

ROUNDS = int(os.environ.get("ROUNDS", "10"))


async def _allow(tool: str, arguments: JsonObject) -> Returned:
    return Returned()


def _letter() -> Letter:
    return Letter(id=str(uuid4()), text="hi", sender="alpha", principal=Principal("team:alpha"))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return (time.perf_counter() - begun) * 1000


async def measure(folder: Path) -> dict[str, list[float]]:
    """Milliseconds of each way, round by round."""
    clock = SystemClock()
    home = Home(folder / "home")
    home.prepare()
    store = await EmbeddedStore.start(home, clock=clock)
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


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        times = asyncio.run(measure(Path(folder)))
    base = statistics.median(times["program, warm"])
    print(f"{'way':<16} {'best ms':>9} {'median ms':>10} {'ratio':>7}")
    for way, taken in times.items():
        middle = statistics.median(taken)
        print(f"{way:<16} {min(taken):>9.1f} {middle:>10.1f} {middle / base:>7.2f}")


if __name__ == "__main__":
    main()
