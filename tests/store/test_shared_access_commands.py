"""Commands for a session that another process holds: naming the holder, following, and waiting."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.store.processes import answer, child, order
from tests.store.sample_events import opened

from holdfast.core import SessionId, SystemClock
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore

SESSION = SessionId("shared")


@pytest.fixture
async def held(home: Home) -> AsyncIterator[Process]:
    """Another process that holds the session."""
    store = await SqliteStore.start(home, clock=SystemClock())
    await store.create(opened(), session=SESSION)
    await store.close()
    async with child("hold", home, SESSION) as process:
        assert await answer(process) == "held"
        yield process


@asynccontextmanager
async def holdfast(home: Home, *words: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "holdfast", *words),
        env=os.environ | {"HOLDFAST_HOME": str(home.root), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=home.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def script(folder: Path) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps(["Answer."]))
    return f"scripted:{path}"


async def test_the_command_names_the_holder_and_the_options(home: Home, held: Process) -> None:
    async with holdfast(home, "-r", SESSION, "-m", script(home.root), "hello") as second:
        _, err = await second.communicate()
        assert second.returncode == 1
    assert f"held by process {held.pid} on" in err.decode()
    assert "for less than a minute" in err.decode()
    assert f"holdfast show {SESSION} --follow" in err.decode()


async def test_show_follow_prints_new_events(home: Home, held: Process) -> None:
    async with holdfast(home, "show", SESSION, "--follow", "--json") as second:
        assert second.stdout is not None
        assert json.loads(await second.stdout.readline())["seq"] == 1
        for number in range(2, 5):
            assert await order(held, f"words {number}") == "written"
            line = json.loads(await second.stdout.readline())
            assert (line["seq"], line["event"]["text"]) == (number, f"words {number}")


async def test_resume_waits_for_the_holder(home: Home, held: Process) -> None:
    words = ("-r", SESSION, "--wait", "60", "-m", script(home.root), "-p", "ask-always", "hello")
    async with holdfast(home, *words) as second:
        assert second.stderr is not None
        waiting = (await second.stderr.readline()).decode()
        assert waiting.startswith(f"process {held.pid} on")
        held.kill()
        out, err = await second.communicate()
        assert (second.returncode, out) == (0, b"Answer.\n"), err
