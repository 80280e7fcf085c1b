"""Snapshots of each engine that has them, loaded by another operating system process."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.guests.engines import ECHO, ENGINES
from tests.guests.test_guest_contract import Echo
from tests.support.fork_server import forked_python

from holdfast.core import EscalationId, Parked, Returned
from holdfast.core.errors import SnapshotRefused
from holdfast.guests import RunRequest

SNAPSHOTS = ("python", "lisp", "scripted")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """What one other process makes of the snapshots of every engine, as they are and with one bit changed."""
    folder = tmp_path_factory.mktemp("snapshots")
    asyncio.run(save_all(folder))
    done = subprocess.run(
        forked_python("-m", "tests.guests.test_second_process", str(folder)),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_resumes_in_a_second_process(name: str, loaded: dict[str, list[object]]) -> None:
    assert loaded[name] == [41, "from afar", ["before", "after"]]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_that_was_changed_on_the_way_is_refused(
    name: str, loaded: dict[str, list[object]]
) -> None:
    assert loaded[f"{name} changed"] == ["state refused", "parked refused"]


async def save_all(folder: Path) -> None:
    """Save the variables and a parked run of each engine, as a store would, and end all processes."""
    for name in SNAPSHOTS:
        candidate, waits = ENGINES[name], Parked(escalation=EscalationId("e"))
        engine = candidate.make(folder)
        guest = engine.guest()
        await guest.run(RunRequest(code=candidate.programs.sets, tools=(ECHO,)), Echo())
        (folder / f"{name}.state").write_bytes(await guest.snapshot())
        request = RunRequest(code=candidate.programs.keeps_then_says, tools=(ECHO,))
        parked = await engine.guest().run(request, Echo(waits))
        assert parked.snapshot is not None
        (folder / f"{name}.parked").write_bytes(parked.snapshot)
        await engine.close()


async def load_all(folder: Path) -> dict[str, list[object]]:
    """What this process makes of them."""
    found: dict[str, list[object]] = {}
    for name in SNAPSHOTS:
        candidate = ENGINES[name]
        engine = candidate.make(folder)
        state, parked = (folder / f"{name}.state").read_bytes(), (folder / f"{name}.parked").read_bytes()
        guest, waits = engine.guest(), engine.guest()
        request = RunRequest(code=candidate.programs.keeps_then_says, tools=(ECHO,))
        refused: list[object] = []
        try:
            await guest.restore(changed(state))
        except SnapshotRefused:
            refused.append("state refused")
        try:
            await waits.resume(changed(parked), Returned(value="from afar"), request, Echo())
        except SnapshotRefused:
            refused.append("parked refused")
        found[f"{name} changed"] = refused
        await guest.restore(state)
        read = await guest.run(RunRequest(code=candidate.programs.reads, tools=(ECHO,)), Echo())
        ended = await waits.resume(parked, Returned(value="from afar"), request, Echo())
        found[name] = [read.value, ended.value, ended.printed.split()]
        await engine.close()
    return found


def changed(snapshot: bytes) -> bytes:
    return snapshot[:-1] + bytes([snapshot[-1] ^ 1])


if __name__ == "__main__":
    print(json.dumps(asyncio.run(load_all(Path(sys.argv[1])))))
