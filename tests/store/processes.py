"""Child processes of these tests, which always end with the test."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.store import Home

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def child(role: str, home: Home, *rest: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.store.child_main", role, str(home.root), *rest),
        cwd=ROOT,
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def order(process: Process, line: str) -> str:
    """Send a line and read the answer."""
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()
    return await answer(process)


async def answer(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def until_stopped(process: Process) -> None:
    """Wait until a child is stopped, without reaping it."""
    await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
