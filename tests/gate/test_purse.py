"""A session and its forks have one purse, wherever they live, and together they never take more out than it holds."""

import json
import multiprocessing
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.core import PERSON, Amount, FakeClock, Limits, SessionId, Usage
from holdfast.core.errors import BudgetExceeded, StoreUnavailable
from holdfast.core.events import BudgetRaised, HistoryCompacted, MessagePosted, SessionOpened, SessionRewound
from holdfast.gate import Budget, TreeBudgetFile, limits_of_tree, share_of
from holdfast.store import Journal, MemoryStore, SessionShare

CAP = Limits(tokens=100)


def purse(path: Path, session: str = "first", share: SessionShare | None = None) -> TreeBudgetFile:
    made = TreeBudgetFile(path / "purse.json", session=SessionId(session))
    if not made.is_readable:
        made.make(CAP, {})
    made.join(share or SessionShare())
    return made


async def opened(limits: Limits = CAP) -> tuple[MemoryStore, Journal]:
    store = MemoryStore(clock=FakeClock())
    event = SessionOpened(
        principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="", limits=limits
    )
    return store, await store.create(event)


def spent(tokens: int) -> HistoryCompacted:
    return HistoryCompacted(through=0, summary="", usage=Usage(input_tokens=tokens))


def test_what_one_session_holds_or_spends_the_other_lacks(tmp_path: Path) -> None:
    first, fork = purse(tmp_path), purse(tmp_path, "fork")
    held = first.reserve(Amount(tokens=60))
    assert fork.remaining("tokens") == 40
    with pytest.raises(BudgetExceeded, match="whole tree"):
        fork.reserve(Amount(tokens=41))
    first.charge(Amount(tokens=10))
    first.release(held)
    assert fork.remaining("tokens") == 90


def test_what_is_added_to_one_session_is_added_to_the_purse(tmp_path: Path) -> None:
    first, fork = purse(tmp_path), purse(tmp_path, "fork")
    fork.charge(Amount(tokens=100))
    fork.add(Limits(tokens=5, steps=3))
    assert first.remaining("tokens") == 5
    assert first.remaining("steps") is None


def test_a_session_that_comes_back_holds_nothing_and_has_spent_what_its_journal_says(tmp_path: Path) -> None:
    first = purse(tmp_path)
    first.reserve(Amount(tokens=70))
    fork = purse(tmp_path, "fork")
    assert fork.remaining("tokens") == 30, "who died held it for something that may have happened"
    purse(tmp_path, share=SessionShare(spent=Amount(tokens=20)))
    assert fork.remaining("tokens") == 80


def test_a_turn_too_many_in_the_whole_tree_is_stopped(tmp_path: Path) -> None:
    first, fork = purse(tmp_path), purse(tmp_path, "fork")
    first.charge(Amount(tokens=60))
    fork.check()
    fork.charge(Amount(tokens=60))
    with pytest.raises(BudgetExceeded, match="whole tree"):
        first.check()


def test_a_purse_whose_first_session_was_deleted_binds_nobody(tmp_path: Path) -> None:
    fork = purse(tmp_path, "fork")
    (tmp_path / "purse.json").unlink()
    number = fork.reserve(Amount(tokens=1000))
    fork.charge(Amount(tokens=1000))
    fork.release(number)
    assert fork.remaining("tokens") is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"limits": {}, "shares": {"\xff": {}}}',
        '{"limits": {}, "shares": 3}',
        '{"limits": {"calls": -1}, "shares": {}}',
    ],
)
def test_a_damaged_purse_gives_nothing_until_it_is_made_anew(tmp_path: Path, content: str) -> None:
    made = purse(tmp_path)
    (tmp_path / "purse.json").write_bytes(content.encode("latin-1"))
    assert not made.is_readable
    with pytest.raises(StoreUnavailable, match="damaged"):
        made.reserve(Amount(tokens=1))
    made.make(CAP, {SessionId("other"): SessionShare(spent=Amount(tokens=99))})
    assert made.remaining("tokens") == 1


def a_link(path: Path) -> None:
    path.symlink_to(path.parent)


def a_folder(path: Path) -> None:
    (path / "inside").mkdir(parents=True)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_flood(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("put", [a_link, a_folder, a_pipe, a_flood])
def test_whatever_else_stands_in_the_place_of_a_purse_is_not_followed_and_made_anew(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    first = purse(tmp_path)
    (tmp_path / "purse.json").unlink()
    put(tmp_path / "purse.json")
    with pytest.raises(StoreUnavailable, match="damaged"):
        first.reserve(Amount(tokens=1))
    assert purse(tmp_path, share=SessionShare(spent=Amount(tokens=60))).remaining("tokens") == 40


def test_a_shorter_content_leaves_nothing_of_the_longer_one(tmp_path: Path) -> None:
    made = purse(tmp_path)
    made.release(made.reserve(Amount(tokens=99, cost_usd=None)))
    assert json.loads((tmp_path / "purse.json").read_text())["shares"]["first"]["held"] == {}


async def test_a_share_is_what_the_journal_says_since_the_fork() -> None:
    store, first = await opened()
    await first.append(MessagePosted(turn=1, text="go", principal=PERSON), spent(30))
    fork = await store.fork(
        first.session,
        at=first.recorded[-1].seq,
        opened=SessionOpened(
            principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="", limits=CAP
        ),
    )
    raised = BudgetRaised(limits=Limits(tokens=150), added=Limits(tokens=50), principal=PERSON)
    await fork.append(spent(7), raised, raised)
    assert limits_of_tree(fork.recorded) == CAP
    assert share_of(first.session, first.recorded).spent.tokens == 30
    share = share_of(fork.session, fork.recorded)
    assert (share.spent.tokens, share.added) == (7, Limits(tokens=100))


async def test_a_rewind_gives_the_session_its_budget_back_but_not_the_tree(tmp_path: Path) -> None:
    _, journal = await opened()
    made = purse(tmp_path, journal.session)
    budget = Budget(journal, turn_limits=Limits(), tree=made)
    await journal.append(spent(30))
    await journal.append(SessionRewound(seq=1, turn=0, principal=PERSON))
    assert budget.spent.tokens == 0
    assert made.remaining("tokens") == 70
    assert share_of(journal.session, journal.recorded).spent.tokens == 30


def spend(folder: Path, name: str, seed: int) -> None:
    """One session of a tree in a process of its own."""
    chance, made = random.Random(seed), purse(folder, name)
    for _ in range(200):
        wanted = chance.randint(0, 12)
        try:
            held = made.reserve(Amount(tokens=wanted))
        except BudgetExceeded:
            continue
        real = chance.randint(0, wanted)
        made.charge(Amount(tokens=real))
        made.release(held)
        made.check()


def test_processes_together_never_pass_the_cap(tmp_path: Path) -> None:
    purse(tmp_path)
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=spend, args=(tmp_path, f"s{n}", n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    left = purse(tmp_path, "last").remaining("tokens")
    assert left is not None
    assert 0 <= left < 13, "and all that could be used was used"
