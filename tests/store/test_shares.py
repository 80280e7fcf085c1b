"""The shares of a tree's budget, tested over every backend."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from tests.store.sample_events import opened

from holdfast.core import Amount, FakeClock, Limits, SessionId
from holdfast.core.errors import BudgetExceeded, StoreUnavailable
from holdfast.store import Home, SessionShare, Shares, Store
from holdfast.store.sqlite.store import SqliteStore

FORK = SessionId("fork")


def share(tokens: int) -> SessionShare:
    return SessionShare(spent=Amount(tokens=tokens), held=Amount(cost_usd=None), added=Limits(calls=3))


async def test_a_tree_has_no_shares_until_one_is_written(store: Store) -> None:
    first = (await store.create(opened())).session
    assert await store.shares(first) == {}
    assert await store.change_shares(first, lambda _: {first: share(1)}) == {first: share(1)}
    assert await store.change_shares(first, lambda _: {FORK: share(2)}) == {first: share(1), FORK: share(2)}
    assert await store.change_shares(first, lambda _: {FORK: share(3)}) == {first: share(1), FORK: share(3)}
    assert await store.shares(first) == {first: share(1), FORK: share(3)}


async def test_a_change_that_is_refused_writes_nothing(store: Store) -> None:
    def refuse(shares: Shares) -> Shares:
        assert shares == {first: share(1)}
        raise BudgetExceeded("too much", dimension="tokens")

    first = (await store.create(opened())).session
    await store.change_shares(first, lambda _: {first: share(1)})
    with pytest.raises(BudgetExceeded):
        await store.change_shares(first, refuse)
    assert await store.shares(first) == {first: share(1)}


async def test_of_changes_at_once_each_sees_the_one_before(store: Store) -> None:
    def one_more(shares: Shares) -> Shares:
        return {first: share(shares[first].spent.tokens + 1 if shares else 1)}

    first = (await store.create(opened())).session
    await asyncio.gather(*(store.change_shares(first, one_more) for _ in range(50)))
    assert (await store.shares(first))[first].spent.tokens == 50


async def test_the_shares_of_another_tree_are_its_own(store: Store) -> None:
    one, other = (await store.create(opened())).session, (await store.create(opened())).session
    await store.change_shares(one, lambda _: {FORK: share(1)})
    assert await store.shares(other) == {}


async def test_shares_are_deleted_with_the_first_session_and_cannot_be_written_again(store: Store) -> None:
    first = await store.create(opened())
    await store.change_shares(first.session, lambda _: {first.session: share(1), FORK: share(2)})
    await first.release()
    await store.delete(first.session)
    assert await store.change_shares(first.session, lambda _: {FORK: share(3)}) == {}
    assert await store.shares(first.session) == {}


async def test_shares_outlive_the_process_and_a_new_session_list(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    first = (await store.create(opened())).session
    await store.change_shares(first, lambda _: {first: share(7)})
    await store.close()
    store = await SqliteStore.start(home, clock=clock)
    await store.rebuild_index()
    assert await store.shares(first) == {first: share(7)}
    await store.close()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"spent": 3}', b'{"spent": {"calls": -1}}', b"\xff", "", 7]
)
async def test_a_damaged_share_is_an_error_until_the_list_is_rebuilt(
    home: Home, clock: FakeClock, body: object
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    first = (await store.create(opened())).session
    await store.change_shares(first, lambda _: {first: share(7), FORK: share(1)})
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("UPDATE share SET amounts = ? WHERE session = ?", (body, FORK))
        connection.commit()
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await store.shares(first)
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await store.change_shares(first, lambda _: {first: share(8)})
    await store.rebuild_index()
    assert await store.shares(first) == {}
    await store.close()
