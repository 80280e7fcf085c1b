"""A turn interrupted after any of its events ends the same: nothing asked twice, nothing done twice."""

from collections.abc import Sequence

import pytest

from holdfast.agent import SessionGuests
from holdfast.core import (
    PERSON,
    Escalation,
    FakeClock,
    FunctionToolset,
    Ok,
    Outcome,
    Proposed,
    Response,
    Tool,
)
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    ModelReplied,
    RecordedEvent,
    RunEnded,
    RunParked,
    RunStarted,
    SessionOpened,
    TurnEnded,
)
from holdfast.guests import ScriptedEngine, script
from holdfast.models import Reply, ScriptedModel, ScriptedReply, use
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.session import Session, SessionParts, Settings, build_session
from holdfast.store import MemoryStore
from holdfast.world import MemoryWorld, StagedWorld

SEND = Tool(
    name="mail.send",
    parameters={"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    roles={},
)


def code(*steps: dict[str, object]) -> Reply:
    return use("execute_code", {"code": script(*steps)})  # type: ignore[arg-type]


REPLIES: list[ScriptedReply] = [
    code(
        {"call": "world.read", "arguments": {"path": "a.txt"}, "as": "text"},
        {"call": "mail.send", "arguments": {"to": "one"}},
        {"print": {"$": "text"}},
    ),
    code(
        {"call": "mail.send", "arguments": {"to": "two"}},
        {"call": "world.write", "arguments": {"path": "a.txt", "content": "new"}},
        {"call": "world.delete", "arguments": {"path": "b.txt"}},
        {"call": "mail.send", "arguments": {"to": "three"}},
    ),
    "All done.",
]
POLICY = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "escalate"})


class InterruptedTurn:
    """One process: its own store with what survived, the mail it sent, the outcome it came to."""

    def __init__(self, recorded: Sequence[RecordedEvent] = (), blobs: Sequence[bytes] = ()) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.recorded = recorded
        self.blobs = blobs
        self.sent: list[str] = []

    async def open(self, world: MemoryWorld, mode: str) -> Session:
        opened = self.recorded[0].event if self.recorded else _opened()
        assert isinstance(opened, SessionOpened)
        journal = await self.store.create(opened)
        if len(self.recorded) > 1:
            await journal.append(*(entry.event for entry in self.recorded[1:]), blobs=self.blobs)
        mail = FunctionToolset({SEND.name: (SEND, lambda arguments: self.sent.append(str(arguments["to"])))})
        session = await build_session(
            SessionParts(
                journal=journal,
                store=self.store,
                staged=StagedWorld(world),
                paths=LexicalPaths(),
                policy=POLICY,
                model=ScriptedModel(REPLIES if mode == "code" else TOOL_REPLIES),
                guests=SessionGuests.single(ScriptedEngine().guest()),
                toolsets=[mail],
                settings=Settings(acts_with="code" if mode == "code" else "tools"),
                clock=self.clock,
            )
        )
        session.approver = _approve
        return session


TOOL_REPLIES: list[ScriptedReply] = [
    use("world__read", {"path": "a.txt"}),
    use("mail__send", {"to": "one"}),
    use("world__delete", {"path": "b.txt"}),
    use("world__write", {"path": "a.txt", "content": "new"}),
    use("mail__send", {"to": "two"}),
    use("mail__send", {"to": "three"}),
    "All done.",
]


async def _approve(escalation: Escalation) -> Response:
    return Response(verdict="approve")


def _opened() -> SessionOpened:
    return SessionOpened(
        principal=PERSON,
        folder="/",
        workspace="",
        policy="fixed",
        policy_digest=POLICY.digest,
        model="scripted:demo",
    )


def files() -> MemoryWorld:
    world = MemoryWorld()
    world.write("a.txt", b"old")
    world.write("b.txt", b"to go")
    return world


async def uninterrupted(mode: str) -> tuple[list[RecordedEvent], list[bytes], Outcome]:
    life = InterruptedTurn()
    session = await life.open(files(), mode)
    outcome = await session.send("go")
    recorded = list(session._journal.recorded)
    names = {name for entry in recorded for name in _blobs_of(entry)}
    return recorded, [await life.store.blob(name) for name in sorted(names)], outcome


def _blobs_of(entry: RecordedEvent) -> list[str]:
    match event := entry.event:
        case RunEnded():
            found = [event.state]
        case RunStarted():
            found = [event.state]
        case RunParked():
            found = [event.snapshot]
        case CallSettled():
            found = [change.after for change in event.changes if change.is_staged]
        case _:
            found = []
    return [name for name in found if name]


@pytest.mark.parametrize("mode", ["code", "tools"])
async def test_a_turn_interrupted_after_any_event_ends_the_same(mode: str) -> None:
    recorded, blobs, outcome = await uninterrupted(mode)
    assert outcome == Proposed(value="All done.", proposals=("a.txt",))
    end = next(n for n, entry in enumerate(recorded) if isinstance(entry.event, TurnEnded))
    assert end > 20
    for kept in range(2, end + 1):
        await check_cut(recorded[:kept], blobs, outcome, mode)


async def check_cut(prefix: list[RecordedEvent], blobs: list[bytes], outcome: Outcome, mode: str) -> None:
    life = InterruptedTurn(prefix, blobs)
    world = files()
    settled = {entry.event.call for entry in prefix if isinstance(entry.event, CallSettled)}
    begun = {e.event.call.id: e.event.call for e in prefix if isinstance(e.event, CallIntended)}
    for call in begun.values():
        if call.operation == "world.delete":
            world.delete("b.txt")  # the first life did this, whether or not it lived to record it
    session = await life.open(world, mode)
    came_to = await session.advance()
    events = [entry.event for entry in session._journal.recorded]
    steps = [event.step for event in events if isinstance(event, ModelReplied)]
    assert steps == sorted(set(steps)), "the model is asked once for each reply"
    sent_before = [call.arguments["to"] for call in begun.values() if call.operation == "mail.send"]
    assert not set(sent_before) & set(life.sent), "a mail that may be out is not sent again"
    assert len(life.sent) == len(set(life.sent))
    unknown = [e for e in events if isinstance(e, CallSettled) and e.status == "unknown"]
    mail_in_flight = [c for c in begun.values() if c.operation == "mail.send" and c.id not in settled]
    assert len(unknown) == len(mail_in_flight), "an unknown outcome is reported"
    if unknown:  # the code gets an error and may take another path from there
        assert isinstance(came_to, Ok | Proposed)
    else:
        assert came_to == outcome, f"cut after {type(prefix[-1].event).__name__}"
    assert session.escalations() == ()
