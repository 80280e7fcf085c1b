"""Snapshots of each engine that has them, taken up by another operating system process."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.guests.engines import ECHO, ENGINES
from tests.guests.test_guest_contract import Echo

from holdfast.core import EscalationId, Parked
from holdfast.guests import RunRequest

SECOND = """
import asyncio, sys
from pathlib import Path
from tests.guests.engines import ECHO, ENGINES
from tests.guests.test_guest_contract import Echo
from holdfast.core import Returned
from holdfast.core.errors import SnapshotRefused
from holdfast.guests import RunRequest

async def main(name, folder, key):
    candidate = ENGINES[name]
    engine = candidate.make(folder)
    state, parked = (folder / "state").read_bytes(), (folder / "parked").read_bytes()
    if key:
        state, parked = (content[:-1] + bytes([content[-1] ^ 1]) for content in (state, parked))
    try:
        guest = engine.guest()
        await guest.restore(state)
        print((await guest.run(RunRequest(code=candidate.programs.reads, tools=(ECHO,)), Echo())).value)
        request = RunRequest(code=candidate.programs.keeps_then_says, tools=(ECHO,))
        ended = await engine.guest().resume(parked, Returned(value="from afar"), request, Echo())
        print(ended.value, ended.printed.split())
    except SnapshotRefused:
        print("refused")
    finally:
        await engine.close()

asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
"""
SNAPSHOTS = ("python", "lisp", "scripted")


@pytest.mark.parametrize("name", SNAPSHOTS)
async def test_a_snapshot_goes_on_in_a_second_process(name: str, tmp_path: Path) -> None:
    await leave(name, tmp_path)
    assert second(name, tmp_path) == ["41", "from afar ['before', 'after']"]


@pytest.mark.parametrize("name", SNAPSHOTS)
async def test_a_snapshot_that_was_changed_on_the_way_is_refused(name: str, tmp_path: Path) -> None:
    await leave(name, tmp_path)
    assert second(name, tmp_path, "changed") == ["refused"]


async def leave(name: str, folder: Path) -> None:
    """Leave variables and a run that waits in files, as a store would, and end every process of ours."""
    candidate, waits = ENGINES[name], Parked(escalation=EscalationId("e"))
    engine = candidate.make(folder)
    guest = engine.guest()
    await guest.run(RunRequest(code=candidate.programs.sets, tools=(ECHO,)), Echo())
    (folder / "state").write_bytes(await guest.snapshot())
    request = RunRequest(code=candidate.programs.keeps_then_says, tools=(ECHO,))
    parked = await engine.guest().run(request, Echo(waits))
    assert parked.snapshot is not None
    (folder / "parked").write_bytes(parked.snapshot)
    await engine.close()


def second(name: str, folder: Path, *words: str) -> list[str]:
    """What another process makes of it."""
    done = subprocess.run(
        [sys.executable, "-c", SECOND, name, str(folder), *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()
