"""The check of `doctor --watch`: work with large values in a separate session, under the watchdog of the event loop."""

import asyncio
import tempfile
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli.doctor.loop_watchdog import LIMIT_SECONDS, LoopWatchdog
from holdfast.core import Error
from holdfast.policy import FixedPolicy
from holdfast.services import CheckResult
from holdfast.session import Settings
from holdfast.store import Home

WORK: dict[str, str] = {
    "a file of 8 MB": "world.write(path='large.txt', content='é' * 4_000_000)\nlen(world.read(path='large.txt'))",
    "200,000 lines": "world.write(path='lines.txt', content='\\n'.join(str(n) for n in range(200_000)))",
    "300 files": (
        "for n in range(300):\n    world.write(path=f'many/{n}.txt', content='x')\n"
        "(len(world.list()), len(world.entries(path='many')), len(world.search(query='x')), len(world.proposals()))"
    ),
    "200,000 values": "{str(n): [n] * 10 for n in range(20_000)}",
    "200 kB of output": "print('é' * 100_000)",
}
_WARM_UP = "world.write(path='a', content='x')\nworld.read(path='a')\nworld.search(query='x')\nprint([1])"
"""Loads what is loaded at the first use, which blocks once and is not what the check is about."""


async def check_event_loop(_: Home) -> list[CheckResult]:
    """Do each kind of work and report the longest time that the event loop was busy with one piece of it."""
    with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
        runtime = await Runtime.start(home=Path(folder, "home"), settings=Settings(), servers=())
        try:
            workspace = Path(folder, "work")
            workspace.mkdir()
            session = await runtime.create(
                workspace=workspace, policy=FixedPolicy(default="stage"), needs_model=False
            )
            await session.execute(_WARM_UP)
            found: list[CheckResult] = []
            for what, code in WORK.items():
                with LoopWatchdog() as watchdog:
                    outcome = await session.execute(code)
                    await asyncio.sleep(0)
                found.append(_result(what, watchdog, outcome.message if isinstance(outcome, Error) else ""))
            return found
        finally:
            await runtime.close()


def _result(what: str, watchdog: LoopWatchdog, problem: str) -> CheckResult:
    if problem:
        return CheckResult(
            part="event loop",
            state="bad",
            detail=f"{what}: {problem}",
            fix="holdfast doctor checks the sandbox",
        )
    longest = f"{what}: at most {watchdog.longest_seconds * 1000:.0f} ms at a time"
    if not watchdog.blocked:
        return CheckResult(part="event loop", state="ok", detail=longest)
    worst = max(watchdog.blocked, key=lambda each: each.milliseconds)
    return CheckResult(
        part="event loop",
        state="note",
        detail=f"{longest}, over the limit of {LIMIT_SECONDS * 1000:.0f} ms ({worst.what} at {worst.where})",
        fix="report it, with this line",
    )
