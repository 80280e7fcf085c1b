"""Budgets: N units and never N+1, counted to the last step, with a warning, resumable once raised."""

import asyncio
from decimal import Decimal

import pytest

from holdfast.core import (
    DIMENSIONS,
    PERSON,
    Amount,
    Call,
    Dimension,
    FakeClock,
    FunctionToolset,
    JsonObject,
    Limits,
    Nonconverged,
    Ok,
    Performed,
    Refused,
    Returned,
    Tool,
    Usage,
    call_id,
)
from holdfast.core.errors import BudgetExceeded, InvalidInput
from holdfast.core.events import BudgetWarned, MessagePosted, ModelReplied, SessionOpened
from holdfast.gate import Budget, Gate, InMemoryTreeBudget
from holdfast.guests import script
from holdfast.models import ModelToolset, Reply, ScriptedModel, say, use
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.session import Session, Settings
from holdfast.store import Journal, MemoryStore
from holdfast.testing import memory_session
from holdfast.world import MemoryWorld, StagedWorld, WorldToolset

USED = Usage(input_tokens=100, output_tokens=10, cost_usd=Decimal("0.01"))


def code(*steps: JsonObject) -> Reply:
    return charged(use("execute_code", {"code": script(*steps)}))


def charged(reply: Reply) -> Reply:
    return Reply(message=reply.message, usage=USED, finish=reply.finish)


def words(text: str) -> Reply:
    return charged(say(text))


async def opened(limits: Limits) -> Journal:
    event = SessionOpened(
        principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="", limits=limits
    )
    journal = await MemoryStore(clock=FakeClock()).create(event)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    return journal


async def reply(journal: Journal, tokens: int) -> None:
    usage = Usage(input_tokens=tokens, cost_usd=Decimal(0))
    message = use("x", {}).message
    await journal.append(ModelReplied(turn=1, step=1, model="m", message=message, usage=usage))


# -- counting


async def test_the_last_step_and_the_text_only_turn_are_counted() -> None:
    async with memory_session([code({"print": "1"}), words("done"), words("hello")]) as session:
        await session.send("work")
        assert (session.budget.spent.tokens, session.budget.spent.steps) == (220, 2)
        await session.send("hi")
        assert (session.budget.spent.tokens, session.budget.spent.steps) == (330, 3)
        assert session.budget.spent.cost_usd == Decimal("0.03")


async def test_a_summary_is_counted_like_any_reply() -> None:
    async with memory_session([words("one"), words("two"), words("three"), words("summary")]) as session:
        for text in ("a", "b", "c"):
            await session.send(text)
        before = session.budget.spent.tokens
        await session.compact(keep_turns=1)
        assert session.budget.spent.tokens > before


async def test_a_side_model_is_counted_and_cannot_exceed_the_limit() -> None:
    side = ScriptedModel([words("aside")], name="scripted:side")
    journal = await opened(Limits(tokens=500))
    gate = Gate(
        journal=journal,
        policy=FixedPolicy(default="allow"),
        toolsets=[ModelToolset(side)],
        paths=LexicalPaths(),
        clock=FakeClock(),
    )

    async def ask(number: int, most: int) -> object:
        arguments: JsonObject = {"prompt": "well?", "max_tokens": most}
        return await gate.submit(Call(id=call_id(1, number), operation="llm.complete", arguments=arguments))

    assert isinstance(await ask(1, 1000), Refused)
    assert isinstance(await ask(2, 200), Returned)
    assert gate.budget.spent.tokens == 110
    assert isinstance(await ask(3, 399), Refused), "what is left does not hold the longest reply"


async def test_bytes_written_are_refused_before_they_are_written() -> None:
    world = MemoryWorld()
    store = MemoryStore(clock=FakeClock())
    gate = Gate(
        journal=await opened(Limits(bytes_written=10)),
        policy=FixedPolicy(default="allow"),
        toolsets=[WorldToolset(world, StagedWorld(world), keep=store.put_blob)],
        paths=LexicalPaths(),
        clock=FakeClock(),
    )

    async def write(number: int, content: str) -> object:
        arguments: JsonObject = {"path": f"{number}.txt", "content": content}
        return await gate.submit(Call(id=call_id(1, number), operation="world.write", arguments=arguments))

    assert isinstance(await write(1, "eleven byte"), Refused)
    assert isinstance(await write(2, "äöü"), Returned)
    assert isinstance(await write(3, "12345"), Refused)
    assert isinstance(await write(4, "1234"), Returned)
    assert gate.budget.spent.bytes_written == 10


# -- nesting


@pytest.mark.parametrize("tightest", ["session", "turn", "tree"])
async def test_the_tightest_of_turn_session_and_tree_counts(tightest: str) -> None:
    limits = {name: Limits(tokens=10 if name == tightest else 100) for name in ("session", "turn", "tree")}
    tree = InMemoryTreeBudget(limits["tree"])
    budget = Budget(await opened(limits["session"]), turn_limits=limits["turn"], tree=tree)
    assert budget.remaining("tokens") == 10
    budget.release(await budget.reserve(Amount(tokens=10)))
    with pytest.raises(BudgetExceeded):
        await budget.reserve(Amount(tokens=11))
    assert tree.remaining("tokens") == limits["tree"].tokens, "what is not spent is given back to the tree"


async def test_what_a_child_spends_is_charged_to_the_tree() -> None:
    tree = InMemoryTreeBudget(Limits(tokens=100))
    first, second = await opened(Limits()), await opened(Limits())
    budgets = [Budget(each, turn_limits=Limits(), tree=tree) for each in (first, second)]
    await reply(first, 60)
    await reply(second, 30)
    assert [budget.remaining("tokens") for budget in budgets] == [10, 10]


def test_limits_narrow_and_never_widen() -> None:
    outer, inner = Limits(tokens=100, calls=5), Limits(tokens=500, steps=3)
    assert outer.narrowed(inner) == Limits(tokens=100, calls=5, steps=3)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("number", [-1, float("nan")])
def test_a_negative_limit_or_amount_is_an_error(dimension: Dimension, number: float) -> None:
    value = Decimal(str(number)) if dimension == "cost_usd" else number
    for kind in (Limits, Amount):
        with pytest.raises(InvalidInput):
            kind(**{dimension: value})  # type: ignore[arg-type]


# -- warning


async def test_a_warning_comes_once_at_four_fifths_also_after_a_restart() -> None:
    journal = await opened(Limits(tokens=100))
    budget = Budget(journal, turn_limits=Limits())
    await reply(journal, 79)
    assert budget.take_new_warnings() == []
    await reply(journal, 1)
    assert budget.take_new_warnings() == [("tokens", "80", "100")]
    assert budget.take_new_warnings() == []
    await journal.append(BudgetWarned(dimension="tokens", spent="80", limit="100"))
    assert Budget(journal, turn_limits=Limits()).take_new_warnings() == []


async def test_the_person_is_warned_in_the_journal() -> None:
    async with memory_session([words("a"), words("b")], limits=Limits(steps=2)) as session:
        warned: list[str] = []
        session.follow(
            lambda entry: (
                warned.append(entry.event.dimension) if isinstance(entry.event, BudgetWarned) else None
            )
        )
        await session.send("one")
        assert warned == []
        await session.send("two")
        assert warned == ["steps"]


# -- stopping, and going on


async def test_a_turn_beyond_the_limit_is_stopped_before_the_model_is_asked() -> None:
    async with memory_session(
        [words("a"), words("b"), words("c"), words("d")], limits=Limits(iterations=3)
    ) as session:
        for text in ("1", "2", "3"):
            assert isinstance(await session.send(text), Ok)
        steps = session.budget.spent.steps
        assert await session.send("4") == Nonconverged(reason="budget", dimension="iterations")
        assert session.budget.spent.steps == steps


class Endless(FunctionToolset):
    """A tool that never answers."""

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        await asyncio.Event().wait()
        return Performed()


ENDLESS = Tool(name="rope.pull", parameters={"type": "object", "properties": {}}, roles={})


async def test_the_time_limit_stops_a_turn_during_a_call_and_the_call_is_recorded() -> None:
    settings = Settings(turn_budget=Limits(wall_seconds=0.05))
    tools = Endless({ENDLESS.name: (ENDLESS, lambda _: None)})
    replies = [code({"call": "rope.pull", "arguments": {}})]
    async with memory_session(replies, settings=settings, toolsets=[tools]) as session:
        outcome = await session.send("pull")
        assert outcome == Nonconverged(value="", reason="budget", dimension="wall_seconds")
        assert [entry.result for entry in session.audit()] == ["cancelled"]
        assert session.status.activity == "ready"


async def test_a_session_without_time_left_does_nothing() -> None:
    async with memory_session([words("a")], limits=Limits(wall_seconds=0.0)) as session:
        assert await session.send("x") == Nonconverged(reason="budget", dimension="wall_seconds")
        assert session.budget.spent.steps == 0


async def test_a_turn_stopped_by_a_budget_keeps_its_work_and_resumes_once_it_is_raised() -> None:
    replies = [code({"call": "world.write", "arguments": {"path": "a", "content": "1"}}), words("All done.")]
    world = MemoryWorld()
    async with memory_session(replies, world=world, limits=Limits(steps=1)) as session:
        stopped = await session.send("write it")
        assert stopped == Nonconverged(value="", reason="budget", dimension="steps")
        assert world.read("a") == b"1"
        assert await session.advance() is None, "without more budget there is nothing to resume"
        await session.raise_budget(Limits(steps=5))
        assert await session.advance() == Ok(value="All done.")
        assert [turn.outcome for turn in session.history()] == [Ok(value="All done.")]
        assert _times_written(session) == 1
        assert await session.advance() is None


async def test_after_a_budget_stop_a_new_message_can_be_sent() -> None:
    replies = [code({"print": "1"}), words("Of course.")]
    async with memory_session(replies, limits=Limits(steps=1)) as session:
        await session.send("work")
        await session.raise_budget(Limits(steps=2))
        assert await session.send("something else") == Ok(value="Of course.")


def _times_written(session: Session) -> int:
    return len(session.audit(operation="world.write"))
