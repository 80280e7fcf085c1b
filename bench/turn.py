"""A whole turn with an instant model and one tool call, at growing histories; and the cost of starting and closing a session.

Peers: pydantic-ai, openai-agents. Their loops do the same with the same instant model, in memory and without a record;
ours is durable at every step. `durable writes alone` appends the events of such a turn, one by one, to a journal of the
same length; the rest is our overhead. Variants alternate, so that load on the machine affects all of them alike.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench._turn_peers import ANSWERED, SAID, Loop, peers
from bench.mcp import ECHO
from holdfast.app import Runtime
from holdfast.core import PERSON, ModelMessage, Ok, TextPart, ToolCallPart, Usage
from holdfast.core.events import Event, MessagePosted, ModelReplied, TurnEnded
from holdfast.mcp import ServerSpec
from holdfast.models import OnPiece, Prompt, Reply
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

HISTORIES = (10, 1_000, 10_000)
ROUNDS = 25
STARTS = 20
READ = "world__exists"
ALLOW = FixedPolicy(default="allow")
ONE_SESSION = """\
import asyncio, tempfile
from pathlib import Path
from holdfast.app import Runtime
from holdfast.models import ScriptedModel, use

async def main():
    with tempfile.TemporaryDirectory() as folder:
        runtime = await Runtime.start(home=Path(folder))
        session = await runtime.create(model=ScriptedModel([use("execute_code", {"code": "1 + 1"}), "done"]))
        await session.send("go")
        status = Path("/proc/self/status").read_text()
        print(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
        await runtime.close()

asyncio.run(main())
"""


class InstantModel:
    """Asks for one tool, then answers; reads only the last message."""

    name = "scripted:instant"
    context_tokens = None

    def __init__(self) -> None:
        self._calls = 0

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        if prompt.messages[-1].__class__.__name__ == "UserMessage":
            self._calls += 1
            part = ToolCallPart(id=f"c{self._calls}", tool=READ, arguments={"path": "a.txt"})
            return Reply(
                message=ModelMessage(parts=(part,)), usage=Usage(input_tokens=1), finish="tool-calls"
            )
        return Reply(message=ModelMessage(parts=(TextPart(text="done"),)), usage=Usage(input_tokens=1))

    async def close(self) -> None:
        """There is nothing to release."""


def main() -> None:
    """Run all measurements and print the tables."""
    asyncio.run(_measure_turns())
    asyncio.run(_measure_sessions())
    kilobytes = subprocess.run(
        [sys.executable, "-c", ONE_SESSION], capture_output=True, text=True, check=True
    ).stdout
    print(f"{'memory of the host with one session, MB':<44}{int(kilobytes) / 1024:>8.0f}")


async def _measure_turns() -> None:
    print(f"{'one turn, one tool call: p50 (least), ms':<44}" + "".join(f"{n:>20,}" for n in HISTORIES))
    columns = [await _column(messages) for messages in HISTORIES]
    for name in columns[0]:
        cells = [f"{statistics.median(column[name]):.2f} ({min(column[name]):.2f})" for column in columns]
        print(f"{name:<44}" + "".join(f"{cell:>20}" for cell in cells))
    above = [
        statistics.median(column["holdfast"]) - statistics.median(column["durable writes alone"])
        for column in columns
    ]
    print(f"{'holdfast above the durable writes':<44}" + "".join(f"{each:>20.2f}" for each in above))


async def _column(messages: int) -> dict[str, list[float]]:
    """Every variant at one length of history."""
    with tempfile.TemporaryDirectory() as folder:
        runtime = await Runtime.start(
            home=Path(folder) / "home", settings=Settings(acts_with="tools", restore_points="never")
        )
        session = await runtime.create(model=InstantModel(), policy=ALLOW)
        await _fill(session, messages)
        first = session.last_seq
        await session.send("go on")
        written = [entry.event for entry in session._journal.recorded if entry.seq > first]
        variants: dict[str, Loop] = {
            "holdfast": lambda: session.send("go on"),
            "durable writes alone": await _durable_writes(runtime, messages, written),
        }
        for name, make in peers().items():
            variants[f"{name}, in memory, no record"] = make(messages)
        # All histories share one heap; a collection would be charged to the variant that happens to run.
        gc.collect()
        gc.freeze()
        times = await _interleave(variants)
        gc.unfreeze()
        await runtime.close()
    return times


async def _durable_writes(runtime: Runtime, messages: int, written: list[Event]) -> Loop:
    session = await runtime.create(model=InstantModel(), policy=ALLOW)
    await _fill(session, messages)

    async def append() -> None:
        for event in written:
            await session._journal.append(event)

    return append


async def _interleave(variants: dict[str, Loop]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in variants}
    for round in range(ROUNDS + 3):
        for name, variant in variants.items():
            started = time.perf_counter()
            await variant()
            if round >= 3:
                times[name].append((time.perf_counter() - started) * 1000)
    return times


async def _measure_sessions() -> None:
    """The time to start and to close a session, without a server and with one."""
    with tempfile.TemporaryDirectory() as folder:
        echo = Path(folder) / "echo.py"
        echo.write_text(ECHO)
        server = ServerSpec(name="echo", command=sys.executable, args=(str(echo),))
        print(f"{'a session, p50 ms':<44}{'ready':>20}{'closed':>20}")
        for name, servers in (("without a server", ()), ("with one MCP server", (server,))):
            async with AsyncExitStack() as stack:
                runtime = await Runtime.start(home=Path(folder) / "home", servers=servers)
                stack.push_async_callback(runtime.close)
                ready, closed = [], []
                for _ in range(STARTS):
                    started = time.perf_counter()
                    session = await runtime.create(model=InstantModel(), policy=ALLOW)
                    ready.append((time.perf_counter() - started) * 1000)
                    started = time.perf_counter()
                    await session.close()
                    closed.append((time.perf_counter() - started) * 1000)
            print(f"{name:<44}{statistics.median(ready):>20.1f}{statistics.median(closed):>20.1f}")


async def _fill(session: Session, messages: int) -> None:
    for turn in range(1, messages // 2 + 1):
        await session._journal.append(
            MessagePosted(turn=turn, text=SAID, principal=PERSON),
            ModelReplied(
                turn=turn,
                step=1,
                model="scripted:instant",
                message=ModelMessage(parts=(TextPart(text=ANSWERED),)),
                usage=Usage(input_tokens=1),
            ),
            TurnEnded(turn=turn, outcome=Ok(value="hi")),
        )


if __name__ == "__main__":
    main()
