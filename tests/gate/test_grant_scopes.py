"""How long a yes holds: once, in this turn, so many times, so many minutes, in this session, always."""

from pathlib import Path

import pytest

from holdfast.core import (
    PERSON,
    Answer,
    Call,
    FakeClock,
    FunctionToolset,
    Parked,
    Response,
    Returned,
    Scope,
    Tool,
    call_id,
    pluralize,
)
from holdfast.core.events import MessagePosted, SessionOpened, SessionRewound
from holdfast.gate import Gate, SavedGrants, describe_grant
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal, MemoryStore

TOOL = Tool(name="box.put", parameters={"type": "object", "properties": {}}, roles={})


class Desk:
    """A gate that asks about everything; every call is the same one under its next number."""

    def __init__(self, journal: Journal, clock: FakeClock, saved_grants: SavedGrants) -> None:
        self.journal = journal
        self._last = len(journal.recorded) * 100
        self.gate = Gate(
            journal=journal,
            policy=FixedPolicy(default="escalate"),
            toolsets=[FunctionToolset({TOOL.name: (TOOL, lambda _: "done")})],
            paths=LexicalPaths(),
            clock=clock,
            saved_grants=saved_grants,
        )

    async def call(self, turn: int = 1) -> Answer:
        self._last += 1
        return await self.gate.submit(Call(id=call_id(turn, self._last), operation=TOOL.name, arguments={}))

    async def approved(self, scope: Scope, amount: int | None = None) -> None:
        """Ask once, say yes in this scope, and make the call."""
        parked = await self.call()
        assert isinstance(parked, Parked)
        yes = Response(verdict="approve", scope=scope, amount=amount)
        await self.gate.resolve(parked.escalation, yes, principal=PERSON, transport="test")
        again = Call(id=call_id(1, self._last), operation=TOOL.name, arguments={})
        assert isinstance(await self.gate.submit(again), Returned)


class Office:
    """Sessions of one home."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.saved_grants = SavedGrants(folder / "grants.json")
        self._store = MemoryStore(clock=self.clock)

    async def desk(self, journal: Journal | None = None) -> Desk:
        if journal is None:
            opened = SessionOpened(
                principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model=""
            )
            journal = await self._store.create(opened)
            await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
        return Desk(journal, self.clock, self.saved_grants)


async def test_a_grant_for_once_covers_only_this_call(tmp_path: Path) -> None:
    desk = await Office(tmp_path).desk()
    await desk.approved("once")
    assert isinstance(await desk.call(), Parked)
    assert desk.gate.grants.active() == ()


async def test_a_grant_for_a_turn_ends_with_the_turn(tmp_path: Path) -> None:
    desk = await Office(tmp_path).desk()
    await desk.approved("turn")
    assert isinstance(await desk.call(), Returned)
    await desk.journal.append(MessagePosted(turn=2, text="go", principal=PERSON))
    assert isinstance(await desk.call(turn=2), Parked)


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_grant_for_n_times_covers_n_calls_including_the_first(tmp_path: Path, times: int) -> None:
    office = Office(tmp_path)
    desk = await office.desk()
    await desk.approved("times", times)
    for used in range(1, times):
        [grant] = desk.gate.grants.active()
        assert describe_grant(grant).endswith(pluralize(times - used, "more time"))
        assert isinstance(await desk.call(), Returned)
    assert isinstance(await desk.call(), Parked)
    again = await office.desk(desk.journal)
    assert isinstance(await again.call(), Parked), "a restart gives none back"


async def test_a_grant_for_minutes_expires(tmp_path: Path) -> None:
    office = Office(tmp_path)
    desk = await office.desk()
    await desk.approved("minutes", 5)
    [grant] = desk.gate.grants.active()
    assert "for 5 minutes" in describe_grant(grant)
    office.clock.advance(299)
    assert isinstance(await desk.call(), Returned)
    office.clock.advance(1)
    assert isinstance(await desk.call(), Parked)


async def test_a_grant_for_a_session_survives_a_restart(tmp_path: Path) -> None:
    office = Office(tmp_path)
    desk = await office.desk()
    await desk.approved("session")
    assert isinstance(await (await office.desk(desk.journal)).call(), Returned)
    assert isinstance(await (await office.desk()).call(), Parked)


async def test_a_grant_for_always_covers_every_session_until_revoked(tmp_path: Path) -> None:
    office = Office(tmp_path)
    await (await office.desk()).approved("always")
    other = await office.desk()
    assert isinstance(await other.call(), Returned)
    [grant] = office.saved_grants.load()
    office.saved_grants.revoke(grant.id)
    assert isinstance(await other.call(), Parked)


async def test_a_rewind_restores_neither_a_revoked_grant_nor_a_use(tmp_path: Path) -> None:
    office = Office(tmp_path)
    desk = await office.desk()
    await desk.approved("times", 2)
    point = desk.journal.recorded[-1].seq
    assert isinstance(await desk.call(), Returned)
    await desk.journal.append(SessionRewound(seq=point, turn=1, principal=PERSON))
    assert isinstance(await desk.call(), Parked), "what was used is used"
    await desk.approved("session")
    point = desk.journal.recorded[-1].seq
    [grant] = desk.gate.grants.active()
    await desk.gate.revoke(grant.id)
    await desk.journal.append(SessionRewound(seq=point, turn=1, principal=PERSON))
    assert desk.gate.grants.active() == ()
    again = await office.desk(desk.journal)
    assert again.gate.grants.active() == (), "also after a restart"


async def test_a_rewind_removes_a_later_grant(tmp_path: Path) -> None:
    desk = await Office(tmp_path).desk()
    point = desk.journal.recorded[-1].seq
    await desk.approved("session")
    assert isinstance(await desk.call(), Returned)
    await desk.journal.append(SessionRewound(seq=point, turn=1, principal=PERSON))
    assert desk.gate.grants.active() == ()
    assert isinstance(await desk.call(), Parked)
