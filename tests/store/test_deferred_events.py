"""Deferred events: recorded with the next append or on their own a moment later, always in order."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.store.conftest import BACKENDS
from tests.store.sample_events import opened

from holdfast.core import CallId, FakeClock, Json, SessionId
from holdfast.core.errors import InvalidInput, LeaseLost, SessionExists, StoreUnavailable
from holdfast.core.events import CallSettled, Noted, RecordedEvent, SessionRenamed
from holdfast.store import Store
from holdfast.store.sqlite.store import SqliteStore


def notes(recorded: Sequence[RecordedEvent]) -> list[str]:
    return [one.event.text for one in recorded if isinstance(one.event, Noted)]


def note(text: str) -> Noted:
    return Noted(code="test", text=text)


async def on_record(store: Store, session: SessionId) -> list[str]:
    return notes(await store.read(session))


async def test_a_deferred_event_is_recorded_in_order_with_the_next_append(store: Store) -> None:
    journal = await store.create(opened())
    journal.append_deferred(note("one"))
    journal.append_deferred(note("two"))
    await journal.append(note("three"))
    journal.append_deferred(note("four"))
    await journal.append(note("five"))
    assert await on_record(store, journal.session) == ["one", "two", "three", "four", "five"]
    assert notes(journal.recorded) == ["one", "two", "three", "four", "five"]


async def test_a_deferred_event_shares_the_commit_of_the_next_append(disk: SqliteStore) -> None:
    journal = await disk.create(opened())
    seen: list[int] = []
    journal.follow(lambda entry: seen.append(entry.seq))
    journal.append_deferred(note("one"))
    assert seen == [1], "a follower must not get an event before it is durable"
    await journal.append(note("two"))
    assert seen == [1, 2, 3]


async def test_a_deferred_event_is_recorded_on_its_own_if_nothing_follows(store: Store) -> None:
    journal = await store.create(opened())
    heard = asyncio.Event()

    def hear(entry: RecordedEvent) -> None:
        if isinstance(entry.event, Noted):
            heard.set()

    journal.follow(hear)
    journal.append_deferred(note("alone"))
    await asyncio.wait_for(heard.wait(), 60)
    assert await on_record(store, journal.session) == ["alone"]


async def test_a_deferred_event_is_recorded_on_release(store: Store) -> None:
    journal = await store.create(opened())
    journal.append_deferred(note("last"))
    await journal.release()
    assert await on_record(store, journal.session) == ["last"]


async def test_an_empty_append_waits_for_deferred_events(store: Store) -> None:
    journal = await store.create(opened())
    journal.append_deferred(note("one"))
    await journal.append()
    assert notes(journal.recorded) == ["one"]


async def test_a_deferred_event_survives_the_close_of_the_store(
    tmp_path: Path, clock: FakeClock, request: pytest.FixtureRequest
) -> None:
    async with BACKENDS["sqlite"](tmp_path, clock, request) as store:
        journal = await store.create(opened())
        journal.append_deferred(note("kept"))
    async with BACKENDS["sqlite"](tmp_path, clock, request) as store:
        assert await on_record(store, journal.session) == ["kept"]


async def test_a_refused_append_does_not_carry_a_deferred_event(store: Store) -> None:
    await store.create(opened(name="taken"))
    journal = await store.create(opened())
    journal.append_deferred(note("kept"))
    with pytest.raises(SessionExists):
        await journal.append(SessionRenamed(name="taken"))
    await journal.append(note("continues"))
    assert await on_record(store, journal.session) == ["kept", "continues"]


async def test_a_deferred_event_precedes_an_append_with_blobs(store: Store) -> None:
    journal = await store.create(opened())
    journal.append_deferred(note("one"))
    await journal.append(note("two"), blobs=[b"content"])
    assert await on_record(store, journal.session) == ["one", "two"]


async def test_an_event_that_cannot_be_encoded_is_refused_at_once(store: Store) -> None:
    journal = await store.create(opened())
    endless: Json = []
    for _ in range(100_000):
        endless = [endless]
    with pytest.raises(InvalidInput):
        journal.append_deferred(CallSettled(call=CallId("1.1"), status="ok", result=endless))
    await journal.append(note("continues"))
    assert await on_record(store, journal.session) == ["continues"]


async def test_a_lost_deferred_event_fails_the_next_append(store: Store) -> None:
    journal = await store.create(opened())
    await journal.release()
    journal.append_deferred(note("too late"))
    with pytest.raises(LeaseLost):
        await journal.append(note("too late as well"))
    assert await on_record(store, journal.session) == []


async def test_a_deferred_event_lost_on_its_own_fails_only_the_next_append(
    disk: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await disk.create(opened())

    def refuse(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as full:
        full.setattr(journal._leases, "check", refuse)
        journal.append_deferred(note("lost"))
        journal._write_deferred()
        with pytest.raises(StoreUnavailable):
            await journal._latest  # type: ignore[misc]
    with pytest.raises(StoreUnavailable):
        await journal.append(note("fails"))
    await journal.append(note("continues"))
    assert await on_record(disk, journal.session) == ["continues"]
