"""Crashes and disk failures at every step: nothing acknowledged is lost or duplicated, and the next start works."""

import asyncio
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.faults import Steps, disk_broken, disk_full, faulty
from tests.store.processes import ROOT
from tests.store.sample_events import opened, said

from holdfast.core import FakeClock, SessionId
from holdfast.core.errors import SessionExists, StoreError, StoreUnavailable
from holdfast.core.events import MessagePosted
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore

PAGE = 4096


def crash_at(folder: Path, *, first: int, stride: int, limit: int) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "tests.store.crash_runs", str(folder), *map(str, (first, stride, limit))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.promise("P06")
def test_killed_at_any_step_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    reports = crash_at(tmp_path, first=1, stride=7, limit=200)
    assert len(reports) > 10
    assert [report for report in reports if report["wrong"]] == []


@pytest.mark.soak
def test_killed_at_every_single_step_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    reports = crash_at(tmp_path, first=1, stride=1, limit=500)
    assert "closed" in str(reports[-1]["acknowledged"])
    assert [report for report in reports if report["wrong"]] == []


async def _suffer(home: Home, clock: FakeClock, step: int, fault: Callable[[], None], is_after: bool) -> bool:
    """Append while the disk fails once, and return whether the fault occurred."""
    session = SessionId("suffering")
    acknowledged: list[str] = []
    steps = Steps(step, fault, is_after=is_after)
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened(), session=session)
    heard: list[int] = []
    journal.follow(lambda one: heard.append(one.seq))
    with faulty(steps):
        other = await SqliteStore.start(home, clock=clock)
        try:
            second = await other.create(opened(), session=SessionId("second"))
            for number in range(1, 4):
                await second.append(said(number, str(number)), blobs=[b"%d" % number])
                acknowledged.append(str(number))
        except StoreError:
            pass
        await other.close()
    for number in range(1, 3):
        await journal.append(said(number, str(number)))
    assert heard == [1, 2, 3]
    await store.close()
    store = await SqliteStore.start(home, clock=clock)
    assert (await store.verify(session)).is_intact
    lines = {line.id: line for line in await store.sessions()}
    if acknowledged:
        assert (await store.verify(SessionId("second"))).is_intact
        recorded = await store.read(SessionId("second"))
        texts = [one.event.text for one in recorded if isinstance(one.event, MessagePosted)]
        assert texts[: len(acknowledged)] == acknowledged
        assert texts == [str(n) for n in range(1, len(texts) + 1)]
    for id in lines:
        await (await store.open(id)).append(said(9, "after"))
    await store.close()
    return steps.taken >= step


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("fault", [disk_full, disk_broken])
@pytest.mark.promise("P06")
async def test_a_disk_that_fails_once_loses_and_duplicates_nothing(
    tmp_path: Path, clock: FakeClock, fault: Callable[[], None], is_after: bool
) -> None:
    await _suffer_at(tmp_path, clock, fault, is_after, stride=3)


@pytest.mark.soak
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("fault", [disk_full, disk_broken])
async def test_a_disk_that_fails_once_at_any_step_loses_and_duplicates_nothing(
    tmp_path: Path, clock: FakeClock, fault: Callable[[], None], is_after: bool
) -> None:
    await _suffer_at(tmp_path, clock, fault, is_after, stride=1)


async def _suffer_at(
    folder: Path, clock: FakeClock, fault: Callable[[], None], is_after: bool, *, stride: int
) -> None:
    step = 1
    while await _suffer(Home(folder / str(step)), clock, step, fault, is_after):
        step += stride
    assert step > 12


async def test_a_full_disk_is_reported_and_work_continues_with_free_space(
    home: Home, clock: FakeClock
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())

    def always(_: object) -> None:
        disk_full()

    steps = Steps(0, disk_full, is_after=False)
    steps.take = always  # type: ignore[method-assign, assignment]
    await journal.append(said(1, "before"))
    with faulty(steps):
        other = await SqliteStore.start(home, clock=clock)
        with pytest.raises(StoreUnavailable, match="disk is full"):
            await other.create(opened())
    assert len(await other.sessions()) == 1
    await other.create(opened())
    await journal.append(said(2, "after"))
    assert len(await other.sessions()) == 2
    await other.close()
    await store.close()


def copy(source: Home, target: Home) -> None:
    """Copy in another process: closing a descriptor of the database here would drop SQLite's locks."""
    target.root.mkdir(parents=True)
    subprocess.run(["cp", "-a", f"{source.root}/.", target.root], check=True)


async def _told(home: Home, clock: FakeClock) -> list[str]:
    store = await SqliteStore.start(home, clock=clock)
    session = SessionId("one")
    assert (await store.verify(session)).is_intact
    texts = [one.event.text for one in await store.read(session) if isinstance(one.event, MessagePosted)]
    journal = await store.open(session)
    await journal.append(said(99, "next"))
    await store.close()
    return texts


async def test_any_part_of_an_unsynced_write_may_be_on_the_disk(
    tmp_path: Path, home: Home, clock: FakeClock
) -> None:
    """Whichever blocks of an unacknowledged commit were written, the acknowledged commits are there."""
    dice = random.Random(5)
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened(), session=SessionId("one"))
    for number in range(1, 4):
        await journal.append(said(number, str(number) * 3000))
    before = Home(tmp_path / "before")
    await asyncio.to_thread(copy, home, before)
    await journal.append(*(said(number, str(number) * 3000) for number in range(4, 7)))
    after = Home(tmp_path / "after")
    await asyncio.to_thread(copy, home, after)
    await store.close()
    old = (before.root / "holdfast.db-wal").read_bytes()
    new = (after.root / "holdfast.db-wal").read_bytes()
    assert len(new) > len(old)
    for attempt in range(30):
        crashed = Home(tmp_path / f"crash-{attempt}")
        shutil.copytree(before.root, crashed.root)
        log = bytearray(old)
        length = dice.randrange(len(old), len(new) + 1)
        log += bytes(length - len(log))
        for start in range(len(old) // 512 * 512, length, 512):
            if dice.random() < 0.6:
                log[start : start + 512] = new[start : min(start + 512, length)]
        log[: len(old)] = old
        (crashed.root / "holdfast.db-wal").write_bytes(log)
        (crashed.root / "holdfast.db-shm").unlink(missing_ok=True)
        texts = await _told(crashed, clock)
        assert texts[:3] == [str(n) * 3000 for n in (1, 2, 3)]
        assert len(texts) in (3, 6)


async def test_any_part_of_a_checkpoint_may_be_on_the_disk(
    tmp_path: Path, home: Home, clock: FakeClock
) -> None:
    """During a checkpoint, any subset of the pages may be in the database; the log is still complete."""
    dice = random.Random(6)
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened(), session=SessionId("one"))
    for number in range(1, 8):
        await journal.append(said(number, str(number) * 3000))
    before = Home(tmp_path / "before")
    await asyncio.to_thread(copy, home, before)
    await store.close()  # the last close checkpoints the log
    old, new = before.database.read_bytes(), home.database.read_bytes()
    assert len(new) > len(old)
    for attempt in range(20):
        crashed = Home(tmp_path / f"crash-{attempt}")
        shutil.copytree(before.root, crashed.root)
        content = bytearray(old) + bytes(dice.randrange(0, len(new) - len(old) + 1) // PAGE * PAGE)
        for start in range(0, len(content), PAGE):
            if dice.random() < 0.5:
                content[start : start + PAGE] = new[start : start + PAGE]
        crashed.database.write_bytes(content)
        (crashed.root / "holdfast.db-shm").unlink(missing_ok=True)
        assert await _told(crashed, clock) == [str(n) * 3000 for n in range(1, 8)]


async def test_an_id_that_was_taken_before_the_disk_failed_stays_taken(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    await (await store.create(opened(), session=SessionId("taken"))).release()
    with faulty(Steps(2, disk_broken, is_after=True)):
        other = await SqliteStore.start(home, clock=clock)
        with pytest.raises(SessionExists):
            await other.create(opened(), session=SessionId("taken"))
        await other.close()
    await store.close()
