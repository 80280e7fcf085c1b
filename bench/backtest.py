"""`holdfast policy backtest` over 100,000 recorded calls, as a user runs it: its own process, reading a home on disk.

The calls are in 200 sessions, four per turn, between the other events of a turn: messages, replies, results, ends. No
two sessions use the same files. BENCH_BACKTEST_SCALE (default 1) shortens the history. No peer can judge its past.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.core import (
    PERSON,
    Call,
    Decision,
    JsonObject,
    ModelMessage,
    Ok,
    SystemClock,
    ToolCallPart,
    Usage,
    call_id,
)
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    Event,
    MessagePosted,
    ModelReplied,
    SessionOpened,
    TurnEnded,
)
from holdfast.store import Home, open_store

SESSIONS = 200
CALLS_PER_TURN = 4
TURNS = int(125 * float(os.environ.get("BENCH_BACKTEST_SCALE", "1")))
ROUNDS = 3
GOAL_SECONDS = 5.0
POLICY = "project"
ALLOWED = Decision(verdict="allow", rule="read-inside", reason="reading is harmless", source="project:12")
USAGE = Usage(input_tokens=2000, output_tokens=200)


def main() -> None:
    """Fill a home, run the command several times and print the best."""
    with tempfile.TemporaryDirectory(prefix="bench-backtest-", dir=os.environ.get("BENCH_FOLDER")) as folder:
        asyncio.run(_fill(Home(Path(folder))))
        runs = [_run(folder) for _ in range(ROUNDS)]
    wall, cpu = min(runs)
    calls = SESSIONS * TURNS * CALLS_PER_TURN
    print(
        f"backtest of {calls:,} recorded calls in {SESSIONS} sessions, the whole command (best of {ROUNDS})"
    )
    print(f"{'wall, s':<20}{wall:>8.2f}  (goal {GOAL_SECONDS:g})")
    print(f"{'CPU, s':<20}{cpu:>8.2f}")


def _run(home: str) -> tuple[float, float]:
    """Wall and CPU seconds."""
    command = [sys.executable, "-m", "holdfast", "policy", "backtest", POLICY]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, env=os.environ | {"HOLDFAST_HOME": home}, capture_output=True, text=True, check=True
    )
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert f"{SESSIONS * TURNS * CALLS_PER_TURN:,} calls of {SESSIONS} sessions" in done.stdout, done.stdout
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _fill(home: Home) -> None:
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    opened = SessionOpened(
        principal=PERSON, folder="/p", workspace="/p", policy=POLICY, policy_digest="", model="m"
    )
    try:
        for number in range(SESSIONS):
            journal = await store.create(opened)
            await journal.append(*(event for turn in range(1, TURNS + 1) for event in _turn(number, turn)))
            await journal.release()
    finally:
        await store.close()


def _turn(session: int, turn: int) -> Iterator[Event]:
    yield MessagePosted(turn=turn, text=f"Look at module {turn} and fix what is wrong.", principal=PERSON)
    calls = [
        Call(id=call_id(turn, number), operation=operation, arguments=arguments)
        for number, (operation, arguments) in enumerate(_calls(session, turn), start=1)
    ]
    parts = tuple(ToolCallPart(id=call.id, tool=call.operation, arguments=call.arguments) for call in calls)
    yield ModelReplied(turn=turn, step=1, model="m", message=ModelMessage(parts=parts), usage=USAGE)
    for call in calls:
        yield CallIntended(call=call, decision=ALLOWED, digest=call.digest, tool_digest="0" * 64)
        yield CallSettled(call=call.id, status="ok", result="a line of what was found\n" * 20)
    yield TurnEnded(turn=turn, outcome=Ok(value="Done."))


def _calls(session: int, turn: int) -> Iterator[tuple[str, JsonObject]]:
    path = f"src/part{session}/module{turn}.py"
    yield "world.search", {"query": f"def work{turn}", "pattern": f"src/part{session}/**", "limit": 20}
    yield "world.read", {"path": path}
    yield "world.write", {"path": path, "content": f"def work{turn}():\n    pass\n" * 20}
    yield "net.fetch", {"url": f"https://docs.example.com/part{session}/{turn}"}


if __name__ == "__main__":
    main()
