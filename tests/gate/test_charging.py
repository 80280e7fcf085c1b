"""What is charged when things go wrong: a failing model, a cancelled call, an unknown outcome."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal

import msgspec
import pytest
from tests.gate.gate_setup import record

from holdfast.core import (
    PERSON,
    Amount,
    Attachment,
    Call,
    Decision,
    Failed,
    FakeClock,
    Limits,
    Performed,
    Refused,
    Returned,
    Tool,
    Toolset,
    Usage,
    UserMessage,
    call_id,
)
from holdfast.core.errors import BudgetExceeded, ModelError, ToolFailed
from holdfast.core.events import (
    BudgetRaised,
    CallIntended,
    HistoryCompacted,
    ModelFailed,
)
from holdfast.gate import Gate, GateSettings
from holdfast.models import ModelToolset, OnPiece, Prompt, Reply, ReplyPiece, ScriptedModel, price_of, say
from holdfast.policy import FixedPolicy, LexicalPaths, Request
from holdfast.store import Journal

TOOL = Tool(name="box.put", parameters={"type": "object", "properties": {}}, roles={})
CALL = Call(id=call_id(1, 1), operation=TOOL.name, arguments={})
PROMPT = Prompt(system="", messages=(UserMessage(text="x" * 300),))
PAID = Usage(input_tokens=70, output_tokens=7, cost_usd=Decimal("0.02"))


def gate_over(journal: Journal, toolsets: Sequence[Toolset] = (), *, call_seconds: float = 60) -> Gate:
    return Gate(
        journal=journal,
        policy=FixedPolicy(default="allow"),
        toolsets=toolsets,
        paths=LexicalPaths(),
        clock=FakeClock(),
        settings=GateSettings(call_seconds=call_seconds),
    )


class FailingModel(ScriptedModel):
    """A model that takes its pay and breaks off."""

    def __init__(self, paid: Usage | None = PAID) -> None:
        super().__init__([])
        self._paid = paid

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        raise ModelError("broke off", usage=self._paid)


class EndlessModel(ScriptedModel):
    """A model that starts a reply and never finishes it."""

    def __init__(self) -> None:
        super().__init__([])
        self.has_begun = asyncio.Event()

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        on_piece(ReplyPiece(text="y" * 60))
        self.has_begun.set()
        await asyncio.Event().wait()
        raise AssertionError


class Costly:
    """A tool that says what it can cost at most, and gets stuck."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    def tools(self) -> tuple[Tool, ...]:
        return (TOOL,)

    def max_cost(self, call: Call) -> Amount:
        return Amount(tokens=40, bytes_written=5)

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        self.has_begun.set()
        await asyncio.Event().wait()
        raise AssertionError


def compacted(reply: Reply) -> HistoryCompacted:
    return HistoryCompacted(through=0, summary=reply.message.text, usage=reply.usage)


async def test_a_failed_summary_is_recorded_with_its_cost() -> None:
    journal = await record()
    gate = gate_over(journal)
    with pytest.raises(ModelError):
        await gate.ask_model_aside(turn=1, model=FailingModel(), prompt=PROMPT, as_event=compacted)
    failed = journal.recorded[-1].event
    assert isinstance(failed, ModelFailed)
    assert (failed.step, failed.usage) == (0, PAID)
    assert (gate.budget.spent.tokens, gate.budget.spent.cost_usd) == (77, Decimal("0.02"))


async def test_a_side_model_that_fails_after_it_was_paid_is_counted() -> None:
    journal = await record(limits=Limits(tokens=2000))
    gate = gate_over(journal, [ModelToolset(FailingModel())])
    call = Call(id=call_id(1, 1), operation="llm.complete", arguments={"prompt": "well?"})
    assert isinstance(await gate.submit(call), Failed)
    assert (gate.budget.spent.tokens, gate.budget.spent.steps) == (77, 1)


async def test_an_unreachable_side_model_costs_nothing_but_counts_as_a_step() -> None:
    gate = gate_over(
        await record(limits=Limits(steps=1, cost_usd=Decimal(1))), [ModelToolset(FailingModel(None))]
    )
    first, second = (
        Call(id=call_id(1, number), operation="llm.complete", arguments={"prompt": "well?"})
        for number in (1, 2)
    )
    assert isinstance(await gate.submit(first), Failed)
    assert gate.budget.spent == Amount(steps=1, calls=1, iterations=1)
    assert isinstance(await gate.submit(second), Refused), "one that is down is not asked without end"


@pytest.mark.parametrize("is_aside", [False, True], ids=["in the turn", "aside"])
async def test_a_cancelled_model_is_charged_for_the_prompt_and_the_partial_reply(
    is_aside: bool,
) -> None:
    model = EndlessModel()
    gate = gate_over(await record(limits=Limits(tokens=1000)))
    asking = (
        gate.ask_model_aside(turn=1, model=model, prompt=PROMPT, as_event=compacted)
        if is_aside
        else gate.ask_model(turn=1, step=1, model=model, prompt=PROMPT, on_piece=lambda _: None)
    )
    task = asyncio.create_task(asking)
    await model.has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 120 <= gate.budget.spent.tokens <= 200, "300 bytes were sent and 60 heard"
    left = gate.budget.remaining("tokens")
    assert left == 1000 - gate.budget.spent.tokens, "the room that was held is given back"


async def test_a_cancelled_call_is_charged_as_reserved() -> None:
    slow = Costly()
    gate = gate_over(await record(limits=Limits(tokens=100)), [slow])
    task = asyncio.create_task(gate.submit(CALL))
    await slow.has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.budget.spent == Amount(tokens=40, bytes_written=5, calls=1, iterations=1)


async def test_a_call_that_times_out_is_charged_as_reserved() -> None:
    gate = gate_over(await record(), [Costly()], call_seconds=0)
    assert isinstance(await gate.submit(CALL), Failed)
    assert gate.budget.spent == Amount(tokens=40, bytes_written=5, calls=1, iterations=1)


class Failing(Costly):
    """A tool that may cost something and fails in a given way."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        raise self._error


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (ToolFailed("no such box"), Amount()),
        (ToolFailed("broke off", usage=PAID), Amount.of(PAID)),
        (OSError(28, "no space left"), Amount()),
        (KeyError("a fault of its own"), Amount(tokens=40, bytes_written=5)),
    ],
    ids=["said no", "was paid", "said why", "broke"],
)
async def test_a_failed_call_is_charged_its_reported_cost_or_as_reserved(
    error: Exception, charged: Amount
) -> None:
    gate = gate_over(await record(), [Failing(error)])
    assert isinstance(await gate.submit(CALL), Failed)
    assert gate.budget.spent == charged.plus(Amount(calls=1, iterations=1))


async def test_a_call_whose_result_is_not_recordable_is_charged_for_what_it_did() -> None:
    class Odd(Costly):
        async def perform(self, call: Call, *, is_staged: bool) -> Performed:
            return Performed(result={1j: "no JSON"}, amount=Amount(tokens=3))  # type: ignore[dict-item]

    gate = gate_over(await record(), [Odd()])
    assert isinstance(await gate.submit(CALL), Failed)
    assert gate.budget.spent.tokens == 3


async def test_a_call_with_unknown_outcome_is_charged_as_reserved() -> None:
    journal = await record()
    allowed = Decision(verdict="allow", rule="r", reason="")
    reserved = Amount(tokens=40, calls=1)
    await journal.append(
        CallIntended(call=CALL, decision=allowed, digest=CALL.digest, tool_digest="", reserved=reserved)
    )
    gate = gate_over(journal, [Costly()])
    assert isinstance(await gate.submit(CALL), Failed)
    assert gate.budget.spent == Amount(tokens=40, calls=1, iterations=1)


async def test_a_call_refused_for_lack_of_budget_is_made_once_there_is_more() -> None:
    class Quick(Costly):
        async def perform(self, call: Call, *, is_staged: bool) -> Performed:
            return Performed(result="done")

    journal = await record(limits=Limits(calls=0))
    gate = gate_over(journal, [Quick()])
    refused = await gate.submit(CALL)
    assert isinstance(refused, Refused)
    assert refused.exhausted == "calls"
    await journal.append(BudgetRaised(limits=Limits(calls=1), principal=PERSON))
    assert await gate.submit(CALL) == Returned(value="done")


class NamedLikeABudget(FixedPolicy):
    """A policy whose rule has the name of a refusal of ours."""

    def judge(self, request: Request) -> Decision:
        return Decision(verdict="deny", rule="budget-calls", reason="no", source="policy.yaml:3")


async def test_a_deny_by_a_rule_named_like_a_budget_is_final() -> None:
    gate = gate_over(await record(), [Costly()])
    gate.use_policy(NamedLikeABudget(default="deny"))
    refused = await gate.submit(CALL)
    assert isinstance(refused, Refused)
    assert refused.exhausted is None
    gate.use_policy(FixedPolicy(default="allow"))
    assert await gate.submit(CALL) == refused, "it is on record"


async def test_the_budget_must_hold_what_an_attachment_costs() -> None:
    picture = Attachment(name="a.png", media_type="image/png", digest="d", size=10, tokens=1_600)
    prompt = Prompt(system="", messages=(UserMessage(text="look", attachments=(picture,)),))
    gate = gate_over(await record(limits=Limits(tokens=1_600)))
    model = ScriptedModel([say("Seen.")])
    with pytest.raises(BudgetExceeded):
        await gate.ask_model(turn=1, step=1, model=model, prompt=prompt, on_piece=lambda _: None)


class LongReplyModel(ScriptedModel):
    """A model that says as much as it may, at the price of a real one."""

    def __init__(self) -> None:
        super().__init__([], name="anthropic:claude-sonnet-4-5")

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        usage = Usage(input_tokens=100, output_tokens=prompt.max_tokens or 1_000_000)
        usage = msgspec.structs.replace(usage, cost_usd=price_of(self.name, usage))
        return Reply(message=say("well").message, usage=usage)


async def test_a_reply_is_no_longer_than_the_remaining_money_pays_for() -> None:
    journal = await record(limits=Limits(cost_usd=Decimal("0.05")))
    gate = gate_over(journal)

    async def ask_on() -> None:
        for step in range(1, 100):
            await gate.ask_model(
                turn=1, step=step, model=LongReplyModel(), prompt=PROMPT, on_piece=lambda _: None
            )

    with pytest.raises(BudgetExceeded, match="budget for usd"):
        await ask_on()
    assert gate.budget.spent.cost_usd is not None
    assert Decimal("0.04") < gate.budget.spent.cost_usd <= Decimal("0.05")
