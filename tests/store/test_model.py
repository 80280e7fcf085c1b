"""Model test: after any sequence of operations, including kills, the store agrees with a plain dictionary."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.store.sample_events import opened, said

from holdfast.core import PERSON, FakeClock, SessionId
from holdfast.core.errors import SessionExists
from holdfast.core.events import (
    Event,
    MessagePosted,
    RecordedEvent,
    SessionPinned,
    SessionRenamed,
    SessionRewound,
)
from holdfast.core.projection import without_rewound
from holdfast.store import Home, Journal, Store, prune
from holdfast.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from tests.support.postgres import Databases

NAMES = st.sampled_from(["one", "two", "three", None])


@dataclass
class Expected:
    """The expected events of a session: the text of each, or None."""

    events: list[str | None]
    counted: list[str]
    name: str | None = None
    is_pinned: bool = False


class StoreMachine(RuleBasedStateMachine):
    """Applies operations to a real store on a real disk and to a dictionary, and compares them."""

    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-model-"))
        self.generation = 0
        self.clock = FakeClock()
        self.expected: dict[SessionId, Expected] = {}
        self.order: list[SessionId] = []
        self.journals: dict[SessionId, Journal] = {}
        self.start()

    def start(self) -> None:
        self.store = self.runner.run(self.open())
        assert self.store.notices == ()

    async def open(self) -> Store:
        self.home = Home(self.folder / str(self.generation))
        return await SqliteStore.start(self.home, clock=self.clock)

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def journal(self, session: SessionId) -> Journal:
        if session not in self.journals:
            self.journals[session] = self.runner.run(self.store.open(session))
        return self.journals[session]

    def moved(self, session: SessionId) -> None:
        self.order = [*(one for one in self.order if one != session), session]

    def is_taken(self, name: str | None, session: SessionId | None = None) -> bool:
        return name is not None and any(
            one.name == name for id, one in self.expected.items() if id != session
        )

    @rule(target=sessions, name=NAMES)
    def create(self, name: str | None) -> SessionId:
        if self.is_taken(name):
            with pytest.raises(SessionExists):
                self.runner.run(self.store.create(opened(name=name)))
            name = None
        journal = self.runner.run(self.store.create(opened(name=name)))
        self.journals[journal.session] = journal
        self.expected[journal.session] = Expected(events=[None], counted=[], name=name)
        self.moved(journal.session)
        return journal.session

    @rule(session=sessions, texts=st.lists(st.text(max_size=8), min_size=1, max_size=4))
    def append(self, session: SessionId, texts: list[str]) -> None:
        if session not in self.expected:
            return
        self.runner.run(_append(self.journal(session), texts))
        self.expected[session].events += texts
        self.expected[session].counted += texts
        self.moved(session)

    @rule(target=sessions, session=sessions, data=st.data())
    def fork(self, session: SessionId, data: st.DataObject) -> SessionId:
        if session not in self.expected:
            return session
        source = self.expected[session]
        at = data.draw(st.integers(1, len(source.events)))
        journal = self.runner.run(self.store.fork(session, at=at, opened=opened()))
        self.journals[journal.session] = journal
        events = [*source.events[:at], None]
        counted = _counted(self.runner.run(self.store.read(journal.session)))
        self.expected[journal.session] = Expected(events=events, counted=counted)
        self.moved(journal.session)
        return journal.session

    @rule(session=sessions, name=NAMES, is_pinned=st.booleans())
    def label(self, session: SessionId, name: str | None, is_pinned: bool) -> None:
        if session not in self.expected:
            return
        events = (SessionRenamed(name=name), SessionPinned(is_pinned=is_pinned))
        if self.is_taken(name, session):
            with pytest.raises(SessionExists):
                self.runner.run(_record(self.journal(session), *events))
            return
        self.runner.run(_record(self.journal(session), *events))
        self.expected[session].events += [None, None]
        self.expected[session].name, self.expected[session].is_pinned = name, is_pinned

    @rule(session=sessions, data=st.data())
    def rewind(self, session: SessionId, data: st.DataObject) -> None:
        if session not in self.expected:
            return
        expected = self.expected[session]
        seq = data.draw(st.integers(1, len(expected.events)))
        self.runner.run(_record(self.journal(session), SessionRewound(seq=seq, turn=0, principal=PERSON)))
        expected.events.append(None)
        expected.counted = _counted(self.runner.run(self.store.read(session)))
        self.moved(session)

    @rule(keep=st.integers(0, 3))
    def prune(self, keep: int) -> None:
        for journal in self.journals.values():
            self.runner.run(journal.release())
        self.journals.clear()
        self.runner.run(prune(self.store, now_ms=self.clock.now_ms(), keep=keep))
        for session in self.order[: max(len(self.order) - keep, 0)]:
            if self.expected[session].name is None and not self.expected[session].is_pinned:
                del self.expected[session]
        self.order = [session for session in self.order if session in self.expected]

    @rule()
    def rebuild(self) -> None:
        assert self.runner.run(self.store.rebuild_index()) == len(self.expected)

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.store.close())
        self.journals.clear()
        self.clock.set_back(60)
        self.start()

    @rule()
    def kill(self) -> None:
        """Continue with the current files, as a killed process leaves them."""
        old, self.generation = self.home.root, self.generation + 1
        subprocess.run(["cp", "-a", old, self.folder / str(self.generation)], check=True)
        self.runner.run(self.store.close())
        shutil.rmtree(old)
        self.journals.clear()
        self.start()

    @precondition(lambda self: self.expected)
    @invariant()
    def everything_is_there(self) -> None:
        lines = self.runner.run(self.store.sessions())
        assert [line.id for line in lines] == self.order[::-1]
        for line in lines:
            expected = self.expected[line.id]
            assert (line.name, line.is_pinned, line.turns) == (
                expected.name,
                expected.is_pinned,
                len(expected.counted),
            )
            recorded = self.runner.run(self.store.read(line.id))
            texts = [one.event.text if isinstance(one.event, MessagePosted) else None for one in recorded]
            assert texts == expected.events
            assert self.runner.run(self.store.verify(line.id)).is_intact


class PostgresMachine(StoreMachine):
    """The same over PostgreSQL. A killed process leaves its row, and its leases until the row is too old."""

    databases: "Databases"

    async def open(self) -> Store:
        from holdfast.store.postgres.store import PostgresStore

        if self.generation == 0:
            self.url = await self.databases.take()
            self.generation = 1
        return await PostgresStore.start(self.url, home=Home(self.folder / "home"), clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        self.databases.give_back(self.url)

    @rule()
    def kill(self) -> None:
        self.runner.run(self._kill())
        self.journals.clear()
        self.start()

    async def _kill(self) -> None:
        import asyncpg

        connection = await asyncpg.connect(self.url)
        await connection.execute("CREATE TABLE dead AS SELECT * FROM holdfast.lease WHERE worker IS NOT NULL")
        await self.store.close()
        await connection.execute(
            "UPDATE holdfast.lease SET worker = dead.worker FROM dead WHERE lease.session = dead.session"
        )
        await connection.execute("DROP TABLE dead")
        await connection.close()


async def _append(journal: Journal, texts: list[str]) -> None:
    await asyncio.gather(*(journal.append(said(1, text)) for text in texts))


async def _record(journal: Journal, *events: Event) -> None:
    await journal.append(*events)


def _counted(recorded: Sequence[RecordedEvent]) -> list[str]:
    return [one.event.text for one in without_rewound(recorded) if isinstance(one.event, MessagePosted)]


_SHORT = settings(
    max_examples=8,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # shrinking takes minutes; the soak test does it
)
_LONG = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
StoreMachine.TestCase.settings = _SHORT
test_a_store_and_a_dictionary_agree = StoreMachine.TestCase


def test_the_store_in_postgresql_and_a_dictionary_agree(postgres_databases: "Databases") -> None:
    PostgresMachine.databases = postgres_databases
    run_state_machine_as_test(PostgresMachine, settings=_SHORT)


@pytest.mark.soak
def test_the_store_agrees_with_a_model_in_long_runs() -> None:
    run_state_machine_as_test(StoreMachine, settings=_LONG)


@pytest.mark.soak
def test_the_store_in_postgresql_agrees_with_a_model_in_long_runs(postgres_databases: "Databases") -> None:
    PostgresMachine.databases = postgres_databases
    run_state_machine_as_test(PostgresMachine, settings=_LONG)
