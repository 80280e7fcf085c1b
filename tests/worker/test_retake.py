"""A released journal is taken again only if nobody held its session in between, in every store that workers share."""

import asyncio
from pathlib import Path

import pytest
from tests.store.sample_events import opened, said
from tests.worker.conftest import Shared

from holdfast.core import SystemClock
from holdfast.core.errors import LeaseLost
from holdfast.store import Home, open_work_store

pytestmark = pytest.mark.parametrize("shared", ["memory", "pgqueuer"], indirect=True)


async def test_a_released_journal_continues_with_a_new_number(shared: Shared) -> None:
    journal = await shared.store.create(opened())
    assert not await shared.store.retake(journal)  # it is held
    fence = journal.fence
    await journal.release()
    with pytest.raises(LeaseLost):
        await journal.append(said(1))
    assert await shared.store.retake(journal)
    assert journal.fence > fence
    assert await shared.store.holder(journal.session) is not None
    await journal.append(said(1))
    await journal.release()
    assert await shared.store.holder(journal.session) is None
    assert [entry.seq for entry in await shared.store.read(journal.session)] == [1, 2]


async def test_a_journal_whose_session_was_held_in_between_is_not_taken_again(shared: Shared) -> None:
    journal = await shared.store.create(opened())
    await journal.release()
    other = await shared.store.open(journal.session)
    assert not await shared.store.retake(journal)
    await other.release()  # it wrote nothing, but could have changed files
    assert not await shared.store.retake(journal)
    assert await shared.store.retake(other)
    await other.append(said(1))
    await other.release()
    await shared.store.delete(journal.session)
    assert not await shared.store.retake(other)


async def test_many_journals_are_released_and_taken_again_together(shared: Shared, tmp_path: Path) -> None:
    journals = [await shared.store.create(opened()) for _ in range(20)]
    await asyncio.gather(*(journal.release() for journal in journals))
    if shared.url is not None:  # another process takes one of them
        elsewhere = await open_work_store(Home(tmp_path / "other"), shared.url, clock=SystemClock())
        await (await elsewhere.open(journals[7].session)).release()
        await elsewhere.close()
    else:
        await (await shared.store.open(journals[7].session)).release()
    taken = await asyncio.gather(*map(shared.store.retake, journals))
    assert [number for number, is_taken in enumerate(taken) if not is_taken] == [7]
    await asyncio.gather(*(journal.append(said(1)) for journal in journals if journal is not journals[7]))
