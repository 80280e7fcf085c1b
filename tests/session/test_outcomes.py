"""How a turn can end: six outcomes, each recorded, and the session is ready for the next turn."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from holdfast.core import (
    Cycle,
    Error,
    JsonObject,
    Limits,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    Response,
    Usage,
)
from holdfast.core.errors import ModelUnavailable
from holdfast.guests.lisp import lisp_engine
from holdfast.models import Prompt, Reply, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.testing import memory_session

POLICY = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "escalate"})
EXISTS = use("world__exists", {"path": "a.txt"})
WRITE = use("world__write", {"path": "a.txt", "content": "new"})
DELETE = use("world__delete", {"path": "a.txt"})


def break_down(prompt: Prompt) -> Reply:
    raise ModelUnavailable("nobody answers")


ENDINGS: dict[str, tuple[Sequence[ScriptedReply], type[Outcome]]] = {
    "ok": ([EXISTS, "Done."], Ok),
    "proposed": ([WRITE, "Done."], Proposed),
    "needs": ([DELETE], Needs),
    "nonconverged": ([EXISTS, WRITE, use("world__exists", {"path": "b.txt"})], Nonconverged),
    "cycle": ([EXISTS] * 9, Cycle),
    "error": ([break_down], Error),
}


async def begun(session: Session) -> Outcome:
    return await session.send("go")


@pytest.mark.parametrize("name", ENDINGS)
async def test_a_turn_ends_in_one_of_six_outcomes_and_records_it(name: str) -> None:
    replies, kind = ENDINGS[name]
    budget = Limits(steps=3) if name == "nonconverged" else Limits(steps=50)
    settings = Settings(acts_with="tools", turn_budget=budget)
    async with memory_session([*replies, *["Next."] * 9], policy=POLICY, settings=settings) as session:
        outcome = await begun(session)
        assert isinstance(outcome, kind), outcome
        if isinstance(outcome, Needs):
            assert session.activity == "waiting"
            await session.cancel()
        else:
            assert session.history()[0].outcome == outcome
        assert session.activity == "ready"
        assert [turn.number for turn in session.history()] == [1]


async def test_a_loop_is_warned_about_then_stopped_and_the_next_turn_starts_over() -> None:
    systems: list[str] = []

    def again(prompt: Prompt) -> Reply:
        systems.append(prompt.system)
        return EXISTS

    settings = Settings(acts_with="tools")
    async with memory_session([*[again] * 5, "Better."], settings=settings) as session:
        outcome = await begun(session)
        assert outcome == Cycle(value="", length=5)
        assert ["several times" in system for system in systems] == [False, False, False, True, True]
        assert await session.send("something else") == Ok(value="Better.")


async def test_a_turn_stopped_by_its_budget_resumes_when_it_is_raised() -> None:
    limits = Limits(steps=1)
    async with memory_session(
        [EXISTS, "Done."], settings=Settings(acts_with="tools"), limits=limits
    ) as session:
        outcome = await begun(session)
        assert isinstance(outcome, Nonconverged)
        assert (outcome.reason, outcome.dimension) == ("budget", "steps")
        await session.raise_budget(Limits(steps=5))
        assert await session.advance() == Ok(value="Done.")


async def test_a_timeout_inside_a_tool_is_not_the_end_of_the_budget() -> None:
    def lose_patience(prompt: Prompt) -> Reply:
        raise TimeoutError

    async with memory_session([lose_patience], limits=Limits(wall_seconds=1000)) as session:
        outcome = await begun(session)
        assert isinstance(outcome, Error), outcome
        [trace] = session.notes()
        assert "lose_patience" in trace.text, "a fault is on record with the place it came from"


@pytest.mark.parametrize(("verdict", "is_there"), [("approve", False), ("deny", True)])
async def test_a_waiting_turn_continues_with_the_answer(verdict: str, is_there: bool) -> None:
    told: list[JsonObject] = []

    def last(prompt: Prompt) -> Reply:
        told.append({"last": type(prompt.messages[-1]).__name__})
        return say("Done.")

    async with memory_session([DELETE, last], policy=POLICY, settings=Settings(acts_with="tools")) as session:
        session.workspace.write("a.txt", b"old")
        assert isinstance(await begun(session), Needs)
        [waiting] = session.escalations()
        await session.resolve(waiting.id, Response(verdict=verdict))  # type: ignore[arg-type]
        assert await session.advance() == Ok(value="Done.")
        assert session.workspace.exists("a.txt") is is_there
        assert told == [{"last": "ToolMessage"}]


async def test_what_each_turn_cost_is_in_the_history_and_adds_up_to_the_session() -> None:
    def priced(text: str, tokens: int, usd: str) -> Reply:
        return Reply(message=say(text).message, usage=Usage(input_tokens=tokens, cost_usd=Decimal(usd)))

    side = use("llm__complete", {"prompt": "a word"})
    replies: list[ScriptedReply] = [
        priced("One.", 100, "0.10"),
        side,
        priced("aside", 7, "0.07"),
        priced("Two.", 200, "0.20"),
        break_down,
        priced("summary", 30, "0.03"),
    ]
    async with memory_session(replies, settings=Settings(acts_with="tools")) as session:
        for message in ("a", "b", "c"):
            await session.send(message)
        await session.compact(keep_turns=1)
        tokens = [turn.spent.tokens for turn in session.history()]
        assert tokens[0] == 100
        assert tokens[1] >= 207
        assert sum(tokens) == session.budget.spent.tokens
        costs = [turn.spent.cost_usd for turn in session.history()]
        assert costs[0] == Decimal("0.10")
        assert session.history()[0].spent.steps == 1


async def test_a_turn_whose_price_is_unknown_costs_unknown_and_never_nothing() -> None:
    reply = Reply(message=say("One.").message, usage=Usage(input_tokens=100, cost_usd=None))
    async with memory_session([reply]) as session:
        await session.send("a")
        assert session.history()[0].spent.cost_usd is None
        assert session.budget.spent.cost_usd is None


async def test_f04_a_turn_is_proposed_only_if_it_staged_something_itself() -> None:
    settings = Settings(acts_with="tools")
    async with memory_session(
        [WRITE, "Done.", "Hello.", WRITE, "Again."], policy=POLICY, settings=settings
    ) as session:
        assert await session.send("write") == Proposed(value="Done.", proposals=("a.txt",))
        assert await session.send("talk") == Ok(value="Hello.")
        assert session.proposals(), "what an earlier turn staged still waits"
        assert await session.send("write") == Proposed(value="Again.", proposals=("a.txt",))


async def test_f04_only_the_paths_of_the_turn_are_its_proposals() -> None:
    other = use("world__write", {"path": "b.txt", "content": "other"})
    settings = Settings(acts_with="tools")
    async with memory_session([WRITE, "One.", other, "Two."], policy=POLICY, settings=settings) as session:
        await session.send("one")
        assert await session.send("two") == Proposed(value="Two.", proposals=("b.txt",))


@pytest.mark.parametrize("language", ["lisp"])
async def test_f04_the_value_that_code_returns_is_inside_the_proposal(language: str) -> None:
    engine = lisp_engine(key=bytes(32))
    async with memory_session(policy=POLICY, engine=engine) as session:
        outcome = await session.execute('(world/write "a.txt" "new") (ok 7)', language=language)
        assert outcome == Proposed(value=7, proposals=("a.txt",))
        assert await session.execute("(ok 7)", language=language) == Ok(value=7)
        assert await session.execute("(+ 1 1)", language=language) == Ok(value=2)
        withdrawn = '(world/write "b.txt" "x") (session/rollback-proposals!) (ok 8)'
        assert await session.execute(withdrawn, language=language) == Ok(value=8)
