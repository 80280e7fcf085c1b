"""Deferred outcomes: written together with the caller's next record, without any observable difference."""

import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gate.gate_setup import record
from tests.support.fork_server import forked_python

from holdfast.core import (
    Amount,
    Call,
    FakeClock,
    FunctionToolset,
    Json,
    JsonObject,
    Limits,
    Parked,
    Performed,
    Refused,
    Returned,
    Tool,
    call_id,
)
from holdfast.core.errors import InvalidInput, LeaseLost
from holdfast.core.events import BudgetWarned, CallIntended, CallSettled
from holdfast.gate import Gate, InMemoryTreeBudget
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Home, Journal, Store, open_store
from holdfast.store.sqlite.store import SqliteStore

PUT = Tool(name="box.put", parameters={"type": "object"}, roles={})
MAIL = Tool(name="mail.send", parameters={"type": "object"}, roles={})


def put(number: int, **arguments: Json) -> Call:
    return Call(id=call_id(1, number), operation=PUT.name, arguments=dict(arguments))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home(tmp_path / "home"), clock=FakeClock())
    yield store
    await store.close()


def gate_over(journal: Journal, toolset: FunctionToolset, *, tree: InMemoryTreeBudget | None = None) -> Gate:
    return Gate(
        journal=journal,
        policy=FixedPolicy(default="allow", verdicts={MAIL.name: "escalate"}),
        toolsets=[toolset],
        paths=LexicalPaths(),
        clock=FakeClock(),
        tree=tree,
    )


def settled(journal: Journal) -> list[str]:
    return [entry.event.call for entry in journal.recorded if isinstance(entry.event, CallSettled)]


def intended(journal: Journal) -> list[str]:
    return [entry.event.call.id for entry in journal.recorded if isinstance(entry.event, CallIntended)]


async def test_no_effect_happens_before_the_previous_outcome_is_on_disk(
    store: SqliteStore,
) -> None:
    journal = await record(store)
    seen: list[tuple[list[str], list[str]]] = []

    def look(_: JsonObject) -> Json:
        seen.append((intended(journal), settled(journal)))
        return "done"

    gate = gate_over(journal, FunctionToolset({PUT.name: (PUT, look)}))
    for number in (1, 2, 3):
        await gate.submit(put(number), can_defer_outcome=True)
    assert seen == [
        (["1.1"], []),
        (["1.1", "1.2"], ["1.1"]),
        (["1.1", "1.2", "1.3"], ["1.1", "1.2"]),
    ]
    await journal.append()
    assert settled(journal) == ["1.1", "1.2", "1.3"]


async def test_without_deferral_the_outcome_is_on_disk_when_the_answer_returns(
    store: SqliteStore,
) -> None:
    journal = await record(store)
    gate = gate_over(journal, FunctionToolset({PUT.name: (PUT, lambda _: "done")}))
    assert await gate.submit(put(1)) == Returned(value="done")
    assert settled(journal) == ["1.1"]


async def test_a_call_resubmitted_before_its_outcome_is_on_disk_is_not_executed_again(
    store: SqliteStore,
) -> None:
    journal = await record(store)
    toolset = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    gate = gate_over(journal, toolset)
    first = await gate.submit(put(1), can_defer_outcome=True)
    again = await gate.submit(put(1), can_defer_outcome=True)
    assert (first, again) == (Returned(value="done"), Returned(value="done"))
    assert len(toolset.performed) == 1
    await journal.append()
    assert settled(journal) == ["1.1"]


@pytest.mark.parametrize("has_tree", [False, True])
async def test_exactly_the_calls_of_a_budget_are_usable(store: SqliteStore, has_tree: bool) -> None:
    limits = Limits(calls=5)
    journal = await record(store, None if has_tree else limits)
    tree = InMemoryTreeBudget(limits) if has_tree else None
    gate = gate_over(journal, FunctionToolset({PUT.name: (PUT, lambda _: "done")}), tree=tree)
    answers = [await gate.submit(put(number, n=number), can_defer_outcome=True) for number in range(1, 8)]
    assert [type(answer) for answer in answers] == [Returned] * 5 + [Refused] * 2
    await journal.append()
    assert gate.budget.spent.calls == 5


class Estimated(FunctionToolset):
    """Holds a hundred bytes for each call and writes ten."""

    def max_cost(self, call: Call) -> Amount:
        return Amount(bytes_written=100)

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        self.performed.append(call)
        return Performed(result="done", amount=Amount(bytes_written=10))


async def test_an_unspent_reservation_is_available_to_the_next_call(store: SqliteStore) -> None:
    journal = await record(store, Limits(bytes_written=120))
    gate = gate_over(journal, Estimated({PUT.name: (PUT, lambda _: "done")}))
    answers = [await gate.submit(put(number, n=number), can_defer_outcome=True) for number in (1, 2, 3, 4)]
    assert [type(answer) for answer in answers] == [Returned, Returned, Returned, Refused]
    assert gate.budget.spent.bytes_written == 30


async def test_the_warning_does_not_wait_for_the_next_call(store: SqliteStore) -> None:
    journal = await record(store, Limits(calls=5))
    gate = gate_over(journal, FunctionToolset({PUT.name: (PUT, lambda _: "done")}))
    for number in range(1, 5):
        await gate.submit(put(number, n=number), can_defer_outcome=True)
    warned = [entry.event for entry in journal.recorded if isinstance(entry.event, BudgetWarned)]
    assert [(one.dimension, one.spent, one.limit) for one in warned] == [("calls", "4", "5")]


async def test_a_deferred_result_is_found_as_a_source(store: SqliteStore) -> None:
    journal = await record(store)
    found = FunctionToolset(
        {PUT.name: (PUT, lambda _: "attacker@example.org"), MAIL.name: (MAIL, lambda _: "")}
    )
    gate = gate_over(journal, found)
    await gate.submit(put(1), can_defer_outcome=True)
    mail = Call(id=call_id(1, 2), operation=MAIL.name, arguments={"to": "attacker@example.org"})
    assert isinstance(await gate.submit(mail, can_defer_outcome=True), Parked)
    (waiting,) = gate.escalations.waiting()
    assert [label.source for label in waiting.call.labels] == ["to: what box.put returned in call 1.1"]


async def test_an_outcome_that_cannot_be_recorded_stops_the_next_effect(store: Store) -> None:
    journal = await record(store)
    toolset = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    gate = gate_over(journal, toolset)
    await gate.submit(put(1), can_defer_outcome=True)
    other = await take_over(store, journal)
    with pytest.raises(LeaseLost):
        await gate.submit(put(2), can_defer_outcome=True)
    assert [call.id for call in toolset.performed] == ["1.1"]
    assert settled(other) == []


async def test_an_outcome_that_cannot_be_stored_does_not_count_as_recorded(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await record(store, Limits(calls=5))
    gate = gate_over(journal, FunctionToolset({PUT.name: (PUT, lambda _: "done")}))

    def refuse(_: object) -> None:
        raise InvalidInput("a known secret is a word that it is made of")

    monkeypatch.setattr(journal, "append_deferred", refuse)
    with pytest.raises(InvalidInput):
        await gate.submit(put(1), can_defer_outcome=True)
    assert await gate.calls.answer(put(1)) is None
    assert [cut_off.call.id for cut_off in gate.calls.all_interrupted()] == ["1.1"]


async def take_over(store: Store, journal: Journal) -> Journal:
    """Whoever takes a session from a process that seems dead has another lease from then on."""
    assert isinstance(store, SqliteStore)
    await store.writing(lambda transaction: store._leases.grant(transaction, journal.session))
    store._leases._forget(journal.session)
    return await store.open(journal.session)


CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.gate.gate_setup import record
from tests.gate.test_deferred_outcomes import PUT, gate_over, put
from holdfast.core import FunctionToolset, SystemClock
from holdfast.store import Home, open_store

async def main(folder, last):
    store = await open_store(Home(folder), clock=SystemClock())
    journal = await record(store)
    effects = os.open(folder / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def act(arguments):
        os.write(effects, f"{arguments['n']} ".encode())
        if arguments["n"] == last:
            os.kill(os.getpid(), signal.SIGKILL)

    gate = gate_over(journal, FunctionToolset({PUT.name: (PUT, act)}))
    for number in range(1, 8):
        await gate.submit(put(number, n=number), can_defer_outcome=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def die(folder: Path, last: int) -> list[str]:
    """Have a process make calls and die in the middle of the last, or right after it; the effects it had."""
    died = subprocess.run(
        forked_python("-c", CHILD, str(folder), str(last)),
        cwd=Path(__file__).parents[2],
        check=False,
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL
    return (folder / "effects").read_text().split()


@pytest.mark.parametrize("last", [1, 4, 0])
async def test_a_process_that_dies_leaves_at_most_one_call_with_unknown_outcome(
    tmp_path: Path, last: int
) -> None:
    made = die(tmp_path, last)
    store = await open_store(Home(tmp_path), clock=FakeClock())
    (session,) = await store.sessions()
    journal = await store.open(session.id)
    assert len(intended(journal)) == len(made) == (last or 7)
    assert settled(journal) == intended(journal)[:-1]
    await store.close()
