"""A session and its forks have one budget, wherever they run, and together they never spend more than it has."""

import asyncio
import multiprocessing
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.sample_events import opened as opened_event

from holdfast.core import PERSON, Amount, FakeClock, Limits, SessionId, Usage, encode
from holdfast.core.errors import BudgetExceeded
from holdfast.core.events import BudgetRaised, HistoryCompacted, MessagePosted, SessionOpened, SessionRewound
from holdfast.gate import (
    Budget,
    StoredTreeBudget,
    left_in_tree,
    limits_of_tree,
    open_tree_budget,
    share_of,
)
from holdfast.store import Home, Journal, MemoryStore, SessionShare, Store
from holdfast.store.sqlite.store import SqliteStore

CAP = Limits(tokens=100)
FORK = SessionId("fork")


def opened(limits: Limits = CAP) -> SessionOpened:
    return SessionOpened(
        principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="", limits=limits
    )


def spent(tokens: int) -> HistoryCompacted:
    return HistoryCompacted(through=0, summary="", usage=Usage(input_tokens=tokens))


async def joined(
    store: Store, tree: SessionId, session: SessionId | None = None, share: SessionShare | None = None
) -> StoredTreeBudget:
    made = StoredTreeBudget(store, tree=tree, session=session or tree, limits=CAP)
    await made.join(share or SessionShare())
    return made


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=FakeClock())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
async def journal(store: MemoryStore) -> Journal:
    return await store.create(opened())


async def forked(store: Store, journal: Journal) -> Journal:
    return await store.fork(journal.session, at=journal.recorded[-1].seq, opened=opened())


async def test_what_one_session_reserves_or_spends_the_other_lacks(
    store: MemoryStore, journal: Journal
) -> None:
    first, fork = await joined(store, journal.session), await joined(store, journal.session, FORK)
    held = await first.reserve(Amount(tokens=60))
    with pytest.raises(BudgetExceeded, match="whole tree"):
        await fork.reserve(Amount(tokens=41))
    await fork.synchronize()
    assert fork.remaining("tokens") == 40
    first.charge(Amount(tokens=10))
    first.release(held)
    await fork.synchronize()
    assert fork.remaining("tokens") == 40, "what is reserved counts until what was spent is written"
    await first.synchronize()
    await fork.synchronize()
    assert first.remaining("tokens") == fork.remaining("tokens") == 90


async def test_a_refused_reservation_holds_nothing(store: MemoryStore, journal: Journal) -> None:
    first = await joined(store, journal.session)
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            await first.reserve(Amount(tokens=101))
    await first.reserve(Amount(tokens=100))


async def test_reservations_at_once_use_all_there_is_and_no_more(
    store: MemoryStore, journal: Journal
) -> None:
    budgets = [await joined(store, journal.session, SessionId(name)) for name in ("one", "other")]
    tries = [budget.reserve(Amount(tokens=30)) for budget in budgets for _ in range(4)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["BudgetExceeded"] * 5 + ["int"] * 3


async def test_a_cancelled_reservation_is_given_back(tmp_path: Path) -> None:
    store = await SqliteStore.start(Home(tmp_path), clock=FakeClock())
    first = await joined(store, (await store.create(opened())).session)
    waiting = asyncio.create_task(first.reserve(Amount(tokens=100)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await first.reserve(Amount(tokens=100))
    await store.close()


async def test_what_is_added_to_one_session_is_added_to_the_tree(
    store: MemoryStore, journal: Journal
) -> None:
    first, fork = await joined(store, journal.session), await joined(store, journal.session, FORK)
    fork.charge(Amount(tokens=100))
    fork.add(Limits(tokens=5, steps=3))
    await fork.synchronize()
    await first.synchronize()
    assert first.remaining("tokens") == 5
    assert first.remaining("steps") is None


async def test_a_turn_too_many_in_the_whole_tree_is_stopped(store: MemoryStore, journal: Journal) -> None:
    first, fork = await joined(store, journal.session), await joined(store, journal.session, FORK)
    first.charge(Amount(tokens=60))
    await first.synchronize()
    await fork.check()
    fork.charge(Amount(tokens=60))
    await fork.synchronize()
    with pytest.raises(BudgetExceeded, match="whole tree"):
        await first.check()


async def test_a_tree_whose_first_session_was_deleted_has_no_limit(
    store: MemoryStore, journal: Journal
) -> None:
    fork = await joined(store, journal.session, FORK)
    await journal.release()
    await store.delete(journal.session)
    number = await fork.reserve(Amount(tokens=1000))
    fork.charge(Amount(tokens=1000))
    fork.release(number)
    await fork.check()
    assert fork.remaining("tokens") is None


async def test_a_share_is_what_the_journal_says_since_the_fork(store: MemoryStore, journal: Journal) -> None:
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON), spent(30))
    fork = await forked(store, journal)
    raised = BudgetRaised(limits=Limits(tokens=150), added=Limits(tokens=50), principal=PERSON)
    await fork.append(spent(7), raised, raised)
    assert limits_of_tree(fork.recorded) == CAP
    assert share_of(journal.session, journal.recorded).spent.tokens == 30
    share = share_of(fork.session, fork.recorded)
    assert (share.spent.tokens, share.added) == (7, Limits(tokens=100))


async def test_a_rewind_gives_the_session_its_budget_back_but_not_the_tree(
    store: MemoryStore, journal: Journal
) -> None:
    tree = await joined(store, journal.session)
    budget = Budget(journal, turn_limits=Limits(), tree=tree)
    await journal.append(spent(30))
    await journal.append(SessionRewound(seq=1, turn=0, principal=PERSON))
    assert budget.spent.tokens == 0
    assert tree.remaining("tokens") == 70
    assert share_of(journal.session, journal.recorded).spent.tokens == 30


# -- a crash


async def reopened(store: Store, home: Home, journal: Journal) -> StoredTreeBudget:
    """What the next process finds, after the one that had the journal died."""
    await journal.release()
    opened = await store.open(journal.session)
    tree = await open_tree_budget(opened, home=home, store=store)
    await opened.release()
    assert tree is not None
    return tree


async def test_what_a_dead_process_reserved_stays_reserved_until_its_session_is_opened(
    store: MemoryStore, home: Home, journal: Journal
) -> None:
    first, fork = await joined(store, journal.session), await joined(store, journal.session, FORK)
    await first.reserve(Amount(tokens=70))
    await fork.synchronize()
    assert fork.remaining("tokens") == 30, "what it was for may have happened"
    await reopened(store, home, journal)
    await fork.synchronize()
    assert fork.remaining("tokens") == 100


@pytest.mark.parametrize("is_written", [True, False])
async def test_a_crash_around_the_charge_loses_no_money_and_charges_nothing_twice(
    store: MemoryStore, home: Home, journal: Journal, is_written: bool
) -> None:
    tree, fork = await joined(store, journal.session), await joined(store, journal.session, FORK)
    budget = Budget(journal, turn_limits=Limits(), tree=tree)
    held = await budget.reserve(Amount(tokens=40))
    await journal.append(spent(25))
    budget.release(held)
    if is_written:
        await budget.synchronize()
    again = await reopened(store, home, journal)
    await fork.synchronize()
    assert again.remaining("tokens") == fork.remaining("tokens") == 75


# -- rows that are lost, and the file of version 0.1


async def test_lost_shares_are_computed_from_the_journals(
    store: MemoryStore, home: Home, journal: Journal
) -> None:
    await journal.append(spent(30))
    fork = await forked(store, journal)
    await fork.append(spent(7))
    grandchild = await forked(store, fork)
    await grandchild.append(spent(1))
    tree = await open_tree_budget(grandchild, home=home, store=store)
    assert tree is not None
    assert tree.remaining("tokens") == 62
    assert set(await store.shares(journal.session)) == {journal.session, fork.session, grandchild.session}


def write_old_file(home: Home, journal: Journal, **held: int) -> Path:
    path = home.tree_budget(journal.session)
    path.parent.mkdir(parents=True)
    shares = {name: SessionShare(held=Amount(tokens=tokens)) for name, tokens in held.items()}
    path.write_bytes(encode({"limits": CAP, "shares": {**shares, journal.session: SessionShare()}}) + b"   ")
    return path


async def test_the_file_of_version_0_1_moves_into_the_store_once(
    store: MemoryStore, home: Home, journal: Journal
) -> None:
    await journal.append(spent(30))
    path = write_old_file(home, journal, other=20)
    assert await left_in_tree(journal.recorded, home=home, store=store) == {"tokens": 80}
    tree = await open_tree_budget(journal, home=home, store=store)
    assert tree is not None
    assert tree.remaining("tokens") == 50, "also what a process that died had reserved"
    assert not path.exists()
    assert await left_in_tree(journal.recorded, home=home, store=store) == {"tokens": 50}


def a_link(path: Path) -> None:
    path.symlink_to(path.parent)


def a_folder(path: Path) -> None:
    (path / "inside").mkdir(parents=True)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_flood(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def text(content: bytes) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.write_bytes(content)

    return put


@pytest.mark.parametrize(
    "put",
    [
        a_link,
        a_folder,
        a_pipe,
        a_flood,
        text(b""),
        text(b"{"),
        text(b"[]"),
        text(b'{"limits": {}, "shares": {"\xff": {}}}'),
        text(b'{"limits": {}, "shares": 3}'),
        text(b'{"limits": {"calls": -1}, "shares": {}}'),
    ],
)
async def test_anything_else_in_its_place_is_not_followed_and_the_journals_count(
    store: MemoryStore, home: Home, journal: Journal, put: Callable[[Path], None]
) -> None:
    await journal.append(spent(60))
    path = write_old_file(home, journal)
    path.unlink()
    put(path)
    tree = await open_tree_budget(journal, home=home, store=store)
    assert tree is not None
    assert tree.remaining("tokens") == 40


# -- processes


async def spend(folder: Path, tree: str, name: str, seed: int) -> None:
    chance, store = random.Random(seed), await SqliteStore.start(Home(folder), clock=FakeClock())
    made = await joined(store, SessionId(tree), SessionId(name))
    for _ in range(60):
        wanted = chance.randint(0, 12)
        try:
            held = await made.reserve(Amount(tokens=wanted))
        except BudgetExceeded:
            continue
        made.charge(Amount(tokens=chance.randint(0, wanted)))
        made.release(held)
        await made.check()
    await made.synchronize()
    await store.close()


def run_spend(folder: Path, tree: str, name: str, seed: int) -> None:
    """One session of a tree in its own process."""
    asyncio.run(spend(folder, tree, name, seed))


async def test_processes_together_never_exceed_the_budget(tmp_path: Path) -> None:
    store = await SqliteStore.start(Home(tmp_path), clock=FakeClock())
    first = (await store.create(opened_event())).session
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=run_spend, args=(tmp_path, first, f"s{n}", n)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join)
    assert [worker.exitcode for worker in workers] == [0, 0]
    last = await joined(store, first, SessionId("last"))
    await store.close()
    left = last.remaining("tokens")
    assert left is not None
    assert 0 <= left < 13, "and all that could be used was used"
