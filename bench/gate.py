"""The gate: decisions at 10 to 10,000 rules, a call with its durable record, and the time from an approval to its call.

No peer records durably before the effect, so the baseline is a raw append with fsync in the same run. Other programs
read answer files by polling every 500 ms, which is measured beside ours. Other policy engines are in bench/policy.

A call of our own agent waits only for its intent record; its outcome reaches the disk with the next record. A call of
another agent, behind the proxy, waits for both.
"""

import asyncio
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from bench.policy import SIZES, WITH_PATHS, WITHOUT_PATHS, median
from holdfast.core import PERSON, Call, FunctionToolset, Parked, SystemClock, Tool, Verdict, call_id
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import ApprovalFiles, Gate, GateSettings
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Home, Journal, Store, open_store

CALLS = 400
CALLS_PER_ROUND = 20
SESSIONS = 50
ANSWERS = 40
POLLED = 15
POLL_SECONDS = 0.5
TOOL = Tool(
    name="box.put",
    parameters={"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    roles={},
    is_idempotent=True,
)


def main() -> None:
    """Run all measurements and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(_measure(Path(folder)))
    for title, engines in (("a path", WITH_PATHS), ("no path", WITHOUT_PATHS)):
        judged = (f"{median(engines['Holdfast'](size)):>9.1f}" for size in SIZES)
        print(f"{f'judge a call with {title}, us of CPU at {_sizes()} rules':<70}" + "".join(judged))
    raw, one, both, many, answer, polled = figures
    for line, figure, remark in (
        ("raw append with fsync, ms", raw, ""),
        ("one call of our agent with its durable record, ms", one, f"{one / raw:.1f} x raw (goal 2)"),
        ("one call of another agent, both records awaited, ms", both, f"{both / raw:.1f} x raw"),
        (f"a call amortised over {SESSIONS} sessions, ms", many, "(goal 0.15)"),
        ("approval by file until its call returns, ms", answer, "(goal 10)"),
        ("the same by polling every 500 ms", polled, f"{polled / answer:.0f} x ours"),
    ):
        print(f"{line:<54}{figure:>9.3f}  {remark}")


def _sizes() -> str:
    return " / ".join(f"{size:,}" for size in SIZES)


class _Disk:
    """Durable appends of plain lines: the baseline."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self) -> float:
        """Append one line and return the seconds."""
        started = time.perf_counter()
        os.write(self._descriptor, b"x" * 600 + b"\n")
        os.fsync(self._descriptor)
        return time.perf_counter() - started

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


async def _measure(folder: Path) -> tuple[float, float, float, float, float, float]:
    home = Home(folder / "home")
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    disk = _Disk(folder)
    try:
        raw, one, both = await _interleaved(disk, await _gate(store), await _gate(store))
        many = await _amortized([await _gate(store) for _ in range(SESSIONS)])
        answer = await _answers(store, folder / "escalations")
        polled = await _polled(folder)
    finally:
        disk.close()
        await store.close()
    return raw, one, both, many, answer, polled


async def _gate(store: Store, verdict: Verdict = "allow") -> tuple[Gate, Journal]:
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    gate = Gate(
        journal=journal,
        policy=FixedPolicy(default=verdict),
        toolsets=[FunctionToolset({TOOL.name: (TOOL, lambda _: "done")})],
        paths=LexicalPaths(),
        clock=SystemClock(),
        settings=GateSettings(repeats=10**9),
    )
    return gate, journal


def _call(number: int) -> Call:
    return Call(id=call_id(1, number), operation=TOOL.name, arguments={"what": f"thing {number}"})


async def _interleaved(
    disk: _Disk, ours: tuple[Gate, Journal], others: tuple[Gate, Journal]
) -> tuple[float, float, float]:
    """Interleave the disk, our agent and another agent, so that load on the machine affects all of them alike."""
    raw: list[float] = []
    one: list[float] = []
    both: list[float] = []
    for first in range(1, CALLS + 1, CALLS_PER_ROUND):
        raw += [disk.append() for _ in range(CALLS_PER_ROUND)]
        for (gate, journal), is_followed, times in ((ours, True, one), (others, False, both)):
            for number in range(first, first + CALLS_PER_ROUND):
                started = time.perf_counter()
                await gate.submit(_call(number), is_followed=is_followed)
                times.append(time.perf_counter() - started)
            await journal.append()
    return statistics.median(raw) * 1000, statistics.median(one) * 1000, statistics.median(both) * 1000


async def _amortized(gates: list[tuple[Gate, Journal]]) -> float:
    each = CALLS // 4

    async def work(gate: Gate, journal: Journal) -> None:
        for number in range(1, each + 1):
            await gate.submit(_call(number), is_followed=True)
        await journal.append()

    started = time.perf_counter()
    await asyncio.gather(*(work(gate, journal) for gate, journal in gates))
    return (time.perf_counter() - started) / (each * len(gates)) * 1000


async def _answers(store: Store, folder: Path) -> float:
    gate, journal = await _gate(store, "escalate")
    approvals = ApprovalFiles(folder, gate=gate, journal=journal)
    await approvals.open()
    times = []
    for number in range(1, ANSWERS + 1):
        parked = await gate.submit(_call(number))
        assert isinstance(parked, Parked)
        draft = folder / "draft"
        draft.write_text('{"decision": "approved"}')
        started = time.perf_counter()
        draft.rename(folder / f"response-{parked.escalation}.json")
        await gate.wait(parked.escalation)
        await gate.submit(_call(number))
        times.append(time.perf_counter() - started)
    await approvals.close()
    return statistics.median(times) * 1000


async def _polled(folder: Path) -> float:
    """How long an answer waits for a program that polls twice a second."""
    generator = random.Random(1)
    times: list[float] = []
    for number in range(POLLED):
        response = folder / f"polled-{number}.json"

        async def poll(response: Path) -> float:
            while not response.exists():  # noqa: ASYNC110  # polling is what is measured
                await asyncio.sleep(POLL_SECONDS)
            return time.perf_counter()

        polling = asyncio.create_task(poll(response))
        await asyncio.sleep(generator.random() * POLL_SECONDS)
        started = time.perf_counter()
        response.write_text('{"decision": "approved"}')
        times.append(await polling - started)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    main()
