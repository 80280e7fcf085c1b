"""Calls that a crash interrupted: those that must not be repeated are reported, and no others."""

from holdfast.agent import SessionGuests
from holdfast.core import PERSON, Call, Decision, FakeClock, FunctionToolset, Ok, Tool, call_id
from holdfast.core.events import CallIntended, CodePosted, SessionOpened
from holdfast.guests import ScriptedEngine, script
from holdfast.models import ScriptedModel
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.session import Session, SessionParts, Settings, build_session
from holdfast.store import MemoryStore
from holdfast.testing import memory_session
from holdfast.world import MemoryWorld, StagedWorld

LOOK = Tool(name="desk.look", parameters={"type": "object"}, roles={})


def intended(number: int, *, is_idempotent: bool) -> CallIntended:
    call = Call(id=call_id(1, number), operation="desk.look", arguments={})
    return CallIntended(
        call=call,
        decision=Decision(verdict="allow", rule="r", reason=""),
        digest=call.digest,
        tool_digest=LOOK.digest,
        is_idempotent=is_idempotent,
    )


async def test_only_interrupted_calls_that_are_not_repeated_are_reported() -> None:
    clock, policy = FakeClock(), FixedPolicy(default="allow")
    store = MemoryStore(clock=clock)
    opened = SessionOpened(
        principal=PERSON, folder="/", workspace="", policy="p", policy_digest=policy.digest, model="m"
    )
    journal = await store.create(opened)
    await journal.append(
        CodePosted(turn=1, code="[]", language="python", principal=PERSON),
        intended(1, is_idempotent=True),
        intended(2, is_idempotent=False),
    )
    session = await build_session(
        SessionParts(
            journal=journal,
            store=store,
            staged=StagedWorld(MemoryWorld()),
            paths=LexicalPaths(),
            policy=policy,
            model=ScriptedModel([]),
            guests=SessionGuests.single(ScriptedEngine().guest()),
            toolsets=(),
            settings=Settings(),
            clock=clock,
        )
    )
    assert [call.id for call in session.unknown_calls()] == ["1.2"]
    await session.close()
    await store.close()


async def test_a_call_in_flight_is_not_an_interrupted_one() -> None:
    sessions: list[Session] = []
    look = FunctionToolset({LOOK.name: (LOOK, lambda _: len(sessions[0].unknown_calls()))})
    async with memory_session(toolsets=[look]) as session:
        sessions.append(session)
        code = script({"call": "desk.look", "arguments": {}, "as": "unknown"}, {"value": {"$": "unknown"}})
        assert await session.execute(code) == Ok(value=0)
