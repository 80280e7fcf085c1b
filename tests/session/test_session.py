"""A session from outside: messages in, outcomes out, and a record of everything in between."""

import asyncio

import pytest

from holdfast.core import (
    Error,
    Escalation,
    JsonObject,
    Limits,
    ModelMessage,
    Needs,
    Nonconverged,
    Ok,
    Proposed,
    Response,
    ToolCallPart,
    ToolMessage,
    Usage,
    UserMessage,
)
from holdfast.core.errors import InvalidInput, SessionIsClosed, SessionNotReady
from holdfast.core.events import RunParked, TurnEnded
from holdfast.guests import ScriptedEngine, script
from holdfast.models import Prompt, Reply, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.testing import ScriptedTransport, memory_session
from holdfast.world import MemoryWorld


def code(*steps: dict[str, object]) -> Reply:
    return use("execute_code", {"code": script(*steps)})  # type: ignore[arg-type]


READ = code({"call": "world.read", "arguments": {"path": "a.txt"}})
WRITE = code({"call": "world.write", "arguments": {"path": "a.txt", "content": "new"}})


def world(**files: str) -> MemoryWorld:
    made = MemoryWorld()
    for name, content in files.items():
        made.write(name.replace("_", "."), content.encode())
    return made


def activity_of(session: Session) -> str:
    return session.status.activity


async def test_a_message_is_answered() -> None:
    async with memory_session(["Hello."]) as session:
        assert await session.send("Hi") == Ok(value="Hello.")
        [turn] = session.history()
        assert (turn.number, turn.asked, turn.outcome) == (1, "Hi", Ok(value="Hello."))


async def test_half_of_a_surrogate_pair_is_refused_and_the_session_continues() -> None:
    async with memory_session(["Hello."]) as session:
        for refused in (session.send, session.execute):
            with pytest.raises(InvalidInput):
                await refused("\ud800")
        assert await session.send("Hi") == Ok(value="Hello.")
        assert len(session.history()) == 1


async def test_a_call_id_repeated_in_a_later_reply_names_another_call() -> None:
    def prints(text: str) -> Reply:
        call = ToolCallPart(id="call_0", tool="execute_code", arguments={"code": script({"print": text})})
        return Reply(message=ModelMessage(parts=(call,)), usage=Usage(), finish="tool-calls")

    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("Done.")

    async with memory_session([prints("one"), prints("two"), listen]) as session:
        await session.send("Hi")
    returned = [message for message in heard[0].messages if isinstance(message, ToolMessage)]
    assert [message.returns[0].content for message in returned] == ["one", "two"]


async def test_code_of_the_model_runs_behind_the_gate_and_its_result_goes_back() -> None:
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("It says old.")

    async with memory_session([READ, listen], world=world(a_txt="old")) as session:
        assert await session.send("What is in a.txt?") == Ok(value="It says old.")
        [entry] = session.audit()
        assert (entry.operation, entry.decision.verdict, entry.result) == ("world.read", "allow", "ok")
    kinds = [type(message) for message in heard[0].messages]
    assert kinds == [UserMessage, ModelMessage, ToolMessage]
    assert isinstance(heard[0].messages[2], ToolMessage)
    assert heard[0].messages[2].returns[0].content == "=> old"


async def test_a_denied_tool_is_not_shown_to_the_model() -> None:
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("ok")

    policy = FixedPolicy(default="deny", verdicts={"world.read": "allow"})
    async with memory_session([listen], policy=policy) as session:
        await session.send("Hi")
    assert "def read(" in heard[0].system
    assert "def delete(" not in heard[0].system


async def test_a_staged_write_is_proposed_and_the_file_changes_on_commit() -> None:
    files = world(a_txt="old")
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    async with memory_session([WRITE, "Done."], world=files, policy=policy) as session:
        outcome = await session.send("Write it.")
        assert outcome == Proposed(value="Done.", proposals=("a.txt",))
        assert files.read("a.txt") == b"old"
        [proposal] = session.proposals()
        assert "-old" in proposal.diff
        assert "+new" in proposal.diff
        await session.commit()
        assert files.read("a.txt") == b"new"
        assert session.proposals() == ()


async def test_rejecting_a_proposal_is_not_the_end_of_the_session() -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    async with memory_session([WRITE, "Done.", "Hello."], world=world(a_txt="old"), policy=policy) as session:
        await session.send("Write it.")
        assert await session.reject() == ("a.txt",)
        assert await session.send("Hi") == Ok(value="Hello.")


async def test_without_an_approver_a_turn_waits_and_can_be_resumed() -> None:
    files = world(a_txt="old")
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    async with memory_session([WRITE, "Done."], world=files, policy=policy) as session:
        outcome = await session.send("Write it.")
        assert isinstance(outcome, Needs)
        assert activity_of(session) == "waiting"
        with pytest.raises(SessionNotReady):
            await session.send("Hurry up")
        [escalation] = session.escalations()
        await session.resolve(escalation.id, Response(verdict="approve"))
        assert await session.advance() == Ok(value="Done.")
        assert files.read("a.txt") == b"new"
        assert activity_of(session) == "ready"


async def test_a_transport_is_asked_and_the_guest_continues_in_mid_line() -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    steps = code(
        {"call": "world.read", "arguments": {"path": "a.txt"}, "as": "before"},
        {"call": "world.write", "arguments": {"path": "a.txt", "content": "new"}},
        {"value": {"$": "before"}},
    )
    async with memory_session([steps, "Done."], world=world(a_txt="old"), policy=policy) as session:
        transport = ScriptedTransport(["Write it."], [Response(verdict="approve")])
        await transport.run(session)
        assert transport.outcomes == [Ok(value="Done.")]
        assert len(transport.asked) == 1
        reads = [entry for entry in session.audit() if entry.operation == "world.read"]
        assert len(reads) == 1, "what ran before the wait does not run again"
        assert any(isinstance(entry.event, RunParked) for entry in session._journal.recorded)


async def test_a_denial_reaches_the_code_as_a_refusal() -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("Then not.")

    async with memory_session([WRITE, listen], policy=policy) as session:
        transport = ScriptedTransport(["Write it."], [Response(verdict="deny", reason="keep it")])
        await transport.run(session)
        assert transport.outcomes == [Ok(value="Then not.")]
    last = heard[0].messages[-1]
    assert isinstance(last, ToolMessage)
    assert last.returns[0].is_error
    assert "keep it" in last.returns[0].content


async def test_cancelling_ends_the_turn_and_the_session_is_ready_with_what_was_done() -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("Hello.")

    replies: list[ScriptedReply] = [WRITE, listen]
    async with memory_session(replies, policy=policy) as session:
        asked = asyncio.Event()

        async def approver(escalation: Escalation) -> None:
            asked.set()
            await asyncio.Event().wait()

        session.approver = approver
        turn = asyncio.create_task(session.send("Write it."))
        await asked.wait()
        await session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert session.history()[0].outcome == Nonconverged(reason="cancelled")
        assert session.escalations() == ()
        assert await session.send("Hi") == Ok(value="Hello.")
    returns = [message for message in heard[0].messages if isinstance(message, ToolMessage)]
    assert len(returns) == 1, "a call of a cancelled turn is answered for it, no provider takes it open"


async def test_closing_with_an_open_escalation_is_prompt_and_keeps_the_turn() -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    async with memory_session([WRITE], policy=policy) as session:
        assert isinstance(await session.send("Write it."), Needs)
        await session.close()
        await session.close()
        with pytest.raises(SessionIsClosed):
            await session.send("Hi")
        assert session.status.has_open_turn, "it waits until the session is resumed"


async def test_an_error_in_a_turn_is_an_outcome_and_the_session_is_ready() -> None:
    async with memory_session([]) as session:
        outcome = await session.send("Hi")
        assert isinstance(outcome, Error)
        assert outcome.code == "model-unavailable"
        assert session.status.activity == "ready"


async def test_a_paused_session_takes_no_turn_until_resumed() -> None:
    async with memory_session(["Hello."]) as session:
        await session.pause()
        with pytest.raises(SessionNotReady):
            await session.send("Hi")
        await session.resume()
        assert await session.send("Hi") == Ok(value="Hello.")


async def test_an_aborted_session_drops_its_proposals_and_takes_no_more_turns() -> None:
    files = world(a_txt="old")
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    async with memory_session([WRITE, "Done."], world=files, policy=policy) as session:
        recorded: list[str] = []
        session.follow(lambda entry: recorded.append(type(entry.event).__name__))
        await session.send("Write it.")
        await session.abort()
        assert session.status.lifecycle == "aborted"
        assert repr(session.status).startswith("Status(lifecycle='aborted', name=None, turns=")
        assert files.read("a.txt") == b"old"
        assert session.proposals() == ()
        assert "ProposalsRejected" in recorded
        with pytest.raises(SessionIsClosed):
            await session.send("Hi")


async def test_host_code_runs_as_a_turn_without_a_model() -> None:
    async with memory_session(world=world(a_txt="old")) as session:
        source = script({"call": "world.read", "arguments": {"path": "a.txt"}})
        assert await session.execute(source) == Ok(value="old")
        failed = await session.execute(script({"fail": "no"}))
        assert isinstance(failed, Error)


async def test_variables_of_the_guest_last_across_turns() -> None:
    async with memory_session() as session:
        await session.execute(script({"value": 41, "as": "kept"}))
        assert await session.execute(script({"value": {"$": "kept"}})) == Ok(value=41)


@pytest.mark.parametrize("iterations", [1, 3])
async def test_a_budget_of_n_steps_allows_n_and_no_more(iterations: int) -> None:
    replies: list[ScriptedReply] = [READ] * 10
    settings = Settings(turn_budget=Limits(steps=iterations))
    async with memory_session(replies, world=world(a_txt="old"), settings=settings) as session:
        outcome = await session.send("Go on for ever")
        assert isinstance(outcome, Nonconverged)
        assert (outcome.reason, outcome.dimension) == ("budget", "steps")
        assert len(session.audit()) == iterations


async def test_plain_tool_calls_work_without_code() -> None:
    settings = Settings(acts_with="tools")
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("It says old.")

    call = use("world__read", {"path": "a.txt"})
    async with memory_session([call, listen], world=world(a_txt="old"), settings=settings) as session:
        assert await session.send("What is in a.txt?") == Ok(value="It says old.")
    offered = {offer.name for offer in heard[0].tools}
    assert "world__read" in offered
    assert "execute_code" not in offered


async def test_events_can_be_followed_as_they_come() -> None:
    async with memory_session(["Hello."]) as session:
        seen: list[str] = []

        async def follow() -> None:
            async for entry in session.events(after=1):
                seen.append(type(entry.event).__name__)
                if isinstance(entry.event, TurnEnded):
                    return

        following = asyncio.create_task(follow())
        await session.send("Hi")
        await following
        assert seen == ["MessagePosted", "ModelAsked", "ModelReplied", "TurnEnded"]


async def test_two_sessions_share_nothing() -> None:
    engine = ScriptedEngine()
    async with memory_session(engine=engine) as one, memory_session(engine=engine) as other:
        await one.execute(script({"value": 1, "as": "mine"}))
        outcome = await other.execute(script({"value": {"$": "mine"}}))
        assert isinstance(outcome, Error)


async def test_a_program_can_return_its_own_outcome() -> None:
    async with memory_session() as session:
        given = script({"value": {"outcome": "needs", "need": "evidence", "description": "which year?"}})
        outcome = await session.execute(given)
        assert isinstance(outcome, Needs)
        assert outcome.need == "evidence"
        plain: JsonObject = {"outcome": "of the vote", "yes": 3}
        assert await session.execute(script({"value": plain})) == Ok(value=plain)


async def test_output_before_a_wait_is_reported_once() -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("ok")

    steps = code(
        {"print": "before"},
        {"call": "world.write", "arguments": {"path": "a.txt", "content": "x"}},
        {"print": "after"},
    )
    async with memory_session([steps, listen], policy=policy) as session:
        await ScriptedTransport(["go"], [Response(verdict="approve")]).run(session)
    last = heard[0].messages[-1]
    assert isinstance(last, ToolMessage)
    assert last.returns[0].content.splitlines()[:2] == ["before", "after"]
