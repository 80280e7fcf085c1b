"""How long an approval lasts: once, this turn, N times, N minutes, this session, always."""

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


class GateSession:
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
        """Submit a call, approve it in this scope, and execute it."""
        parked = await self.call()
        assert isinstance(parked, Parked)
        yes = Response(verdict="approve", scope=scope, amount=amount)
        await self.gate.resolve(parked.escalation, yes, principal=PERSON, transport="test")
        again = Call(id=call_id(1, self._last), operation=TOOL.name, arguments={})
        assert isinstance(await self.gate.submit(again), Returned)


class GateSessions:
    """Sessions of one home."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.saved_grants = SavedGrants(folder / "grants.json")
        self._store = MemoryStore(clock=self.clock)

    async def session(self, journal: Journal | None = None) -> GateSession:
        if journal is None:
            opened = SessionOpened(
                principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model=""
            )
            journal = await self._store.create(opened)
            await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
        return GateSession(journal, self.clock, self.saved_grants)


async def test_a_grant_for_once_covers_only_this_call(tmp_path: Path) -> None:
    session = await GateSessions(tmp_path).session()
    await session.approved("once")
    assert isinstance(await session.call(), Parked)
    assert session.gate.grants.active() == ()


async def test_a_grant_for_a_turn_ends_with_the_turn(tmp_path: Path) -> None:
    session = await GateSessions(tmp_path).session()
    await session.approved("turn")
    assert isinstance(await session.call(), Returned)
    await session.journal.append(MessagePosted(turn=2, text="go", principal=PERSON))
    assert isinstance(await session.call(turn=2), Parked)


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_grant_for_n_times_covers_n_calls_including_the_first(tmp_path: Path, times: int) -> None:
    sessions = GateSessions(tmp_path)
    session = await sessions.session()
    await session.approved("times", times)
    for used in range(1, times):
        [grant] = session.gate.grants.active()
        assert describe_grant(grant).endswith(pluralize(times - used, "more time"))
        assert isinstance(await session.call(), Returned)
    assert isinstance(await session.call(), Parked)
    again = await sessions.session(session.journal)
    assert isinstance(await again.call(), Parked), "a restart gives none back"


async def test_a_grant_for_minutes_expires(tmp_path: Path) -> None:
    sessions = GateSessions(tmp_path)
    session = await sessions.session()
    await session.approved("minutes", 5)
    [grant] = session.gate.grants.active()
    assert "for 5 minutes" in describe_grant(grant)
    sessions.clock.advance(299)
    assert isinstance(await session.call(), Returned)
    sessions.clock.advance(1)
    assert isinstance(await session.call(), Parked)


async def test_a_grant_for_a_session_survives_a_restart(tmp_path: Path) -> None:
    sessions = GateSessions(tmp_path)
    session = await sessions.session()
    await session.approved("session")
    assert isinstance(await (await sessions.session(session.journal)).call(), Returned)
    assert isinstance(await (await sessions.session()).call(), Parked)


async def test_a_grant_for_always_covers_every_session_until_revoked(tmp_path: Path) -> None:
    sessions = GateSessions(tmp_path)
    await (await sessions.session()).approved("always")
    other = await sessions.session()
    assert isinstance(await other.call(), Returned)
    [grant] = sessions.saved_grants.load()
    await sessions.saved_grants.revoke(grant.id)
    assert isinstance(await other.call(), Parked)


async def test_a_rewind_restores_neither_a_revoked_grant_nor_a_use(tmp_path: Path) -> None:
    sessions = GateSessions(tmp_path)
    session = await sessions.session()
    await session.approved("times", 2)
    point = session.journal.recorded[-1].seq
    assert isinstance(await session.call(), Returned)
    await session.journal.append(SessionRewound(seq=point, turn=1, principal=PERSON))
    assert isinstance(await session.call(), Parked), "what was used is used"
    await session.approved("session")
    point = session.journal.recorded[-1].seq
    [grant] = session.gate.grants.active()
    await session.gate.revoke(grant.id)
    await session.journal.append(SessionRewound(seq=point, turn=1, principal=PERSON))
    assert session.gate.grants.active() == ()
    again = await sessions.session(session.journal)
    assert again.gate.grants.active() == (), "also after a restart"


async def test_a_rewind_removes_a_later_grant(tmp_path: Path) -> None:
    session = await GateSessions(tmp_path).session()
    point = session.journal.recorded[-1].seq
    await session.approved("session")
    assert isinstance(await session.call(), Returned)
    await session.journal.append(SessionRewound(seq=point, turn=1, principal=PERSON))
    assert session.gate.grants.active() == ()
    assert isinstance(await session.call(), Parked)
