"""A sandbox that must be built first: the turn waits for it and is charged only for its own work."""

from holdfast.core import Answer, FakeClock, Limits, Ok
from holdfast.core.errors import EngineNotBuilt
from holdfast.core.events import Noted, RunStarted
from holdfast.guests import Capabilities, Guest, OnCall, Run, RunRequest, ScriptedEngine, script
from holdfast.models import ScriptedReply, use
from holdfast.store import MemoryStore
from holdfast.testing import memory_session

BUILD_SECONDS = 1000.0


class UnbuiltEngine:
    """An engine, and its one guest, that must be built before the first run."""

    def __init__(self, clock: FakeClock) -> None:
        self._engine = ScriptedEngine()
        self._guest: Guest = self._engine.guest()
        self._clock = clock
        self._is_built = False
        self.capabilities: Capabilities = self._engine.capabilities

    def guest(self) -> "UnbuiltEngine":
        return self

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        if not self._is_built:
            raise EngineNotBuilt("it is built first", make_ready=self._build)
        return await self._guest.run(request, on_call)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        return await self._guest.resume(snapshot, answer, request, on_call)

    async def snapshot(self) -> bytes:
        return await self._guest.snapshot()

    async def restore(self, state: bytes) -> None:
        await self._guest.restore(state)

    async def close(self) -> None:
        await self._guest.close()

    async def _build(self) -> None:
        self._clock.advance(BUILD_SECONDS)
        self._is_built = True


async def test_building_a_sandbox_is_not_charged_to_the_turn() -> None:
    clock = FakeClock()
    limits = Limits(wall_seconds=10)
    async with memory_session(engine=UnbuiltEngine(clock), clock=clock, limits=limits) as session:
        assert await session.execute(script({"value": 42})) == Ok(value=42)
        assert session.budget.spent.wall_seconds < 10
        assert await session.execute(script({"value": 43})) == Ok(value=43)


async def test_the_build_is_reported_and_the_code_starts_once() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    replies: list[ScriptedReply] = [use("execute_code", {"code": script({"value": 42})}), "Done."]
    async with memory_session(replies, engine=UnbuiltEngine(clock), clock=clock, store=store) as session:
        assert await session.send("go") == Ok(value="Done.")
        events = [entry.event for entry in await store.read(session.id)]
    assert [event.code for event in events if isinstance(event, Noted)] == ["engine-unready", "engine-ready"]
    assert len([event for event in events if isinstance(event, RunStarted)]) == 1
