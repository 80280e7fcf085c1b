"""Permission and budget cases that other projects got wrong or left open, as data."""

from pathlib import Path

import msgspec
import pytest

from holdfast.core import (
    DIMENSIONS,
    PERSON,
    Amount,
    Answer,
    Call,
    EscalationId,
    FakeClock,
    FunctionToolset,
    Limits,
    Parked,
    Refused,
    Response,
    Tool,
    Value,
    Verdict,
    call_id,
)
from holdfast.core.errors import BudgetExceeded, EscalationUnknown, InvalidInput
from holdfast.core.events import CallSettled, MessagePosted, SessionOpened
from holdfast.gate import Budget, Gate, GateSettings, InMemoryTreeBudget
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal, MemoryStore

DATA = Path(__file__).parent / "data"
TOOL = Tool(name="box.put", parameters={"type": "object", "properties": {}}, roles={})
CALL = Call(id=call_id(1, 1), operation=TOOL.name, arguments={})


class Permission(Value):
    id: str
    title: str
    policy: Verdict
    then: tuple[str, ...]
    answer: str
    can_ask: bool = True
    reason: str = ""


class Step(Value):
    spend: dict[str, float | str] = msgspec.field(default_factory=dict)
    expect: str = ""
    restart: bool = False


class Spending(Value):
    id: str
    title: str
    limits: Limits
    steps: tuple[Step, ...]
    spent: dict[str, float | str]
    remaining: dict[str, float | None]
    tree: Limits | None = None
    tree_spent: dict[str, float] = msgspec.field(default_factory=dict)
    is_over: bool = False


class Share(Value):
    id: str
    limits: Limits
    weights: tuple[int, ...]
    shares: tuple[Limits, ...] | None


def content(name: str) -> bytes:
    return (DATA / name).read_bytes()


PERMISSIONS = msgspec.json.decode(content("permission-cases.json"), type=list[Permission])
SPENDINGS = msgspec.json.decode(content("budget-cases.json"), type=list[Spending])
SHARES = msgspec.json.decode(content("share-cases.json"), type=list[Share])


async def opened(limits: Limits | None = None) -> Journal:
    event = SessionOpened(
        principal=PERSON,
        folder="/",
        workspace="",
        policy="",
        policy_digest="",
        model="",
        limits=limits or Limits(),
    )
    return await MemoryStore(clock=FakeClock()).create(event)


class GateSetup:
    """A gate with one tool, and a person who does one thing after another."""

    def __init__(self, case: Permission, journal: Journal) -> None:
        self._case, self._journal = case, journal
        self._clock = FakeClock()
        self.tools = FunctionToolset({TOOL.name: (TOOL, lambda _: "done")})
        self.gate = self._gate(journal)

    async def do(self, step: str, parked: Parked) -> None:
        match step.split():
            case ["approve" | "deny" as word]:
                await self._answer(word, parked.escalation)
            case ["late", word]:
                with pytest.raises(EscalationUnknown, match=r"late|already"):
                    await self._answer(word, parked.escalation)
            case ["approve", "unknown"]:
                with pytest.raises(EscalationUnknown, match="no escalation"):
                    await self._answer("approve", EscalationId("never"))
            case ["approve", "elsewhere"]:
                other = self._gate(await opened())
                with pytest.raises(EscalationUnknown, match="no escalation"):
                    await other.resolve(
                        parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test"
                    )
            case ["silence"]:
                self._clock.advance(31)
                await self.gate.wait(parked.escalation)
            case _:
                assert step == "shutdown"
                assert self.tools.performed == []
                self.gate = self._gate(self._journal)

    def _gate(self, journal: Journal) -> Gate:
        return Gate(
            journal=journal,
            policy=FixedPolicy(default=self._case.policy),
            toolsets=[self.tools],
            paths=LexicalPaths(),
            clock=self._clock,
            settings=GateSettings(escalation_seconds=30, can_ask=self._case.can_ask),
        )

    async def _answer(self, word: str, id: EscalationId) -> None:
        response = Response(verdict="approve" if word == "approve" else "deny")
        await self.gate.resolve(id, response, principal=PERSON, transport="test")


@pytest.mark.parametrize("case", PERMISSIONS, ids=lambda case: case.id)
async def test_permission(case: Permission) -> None:
    journal = await opened()
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    setup = GateSetup(case, journal)
    answer: Answer = await setup.gate.submit(CALL)
    for step in case.then:
        assert isinstance(answer, Parked)
        await setup.do(step, answer)
    answer = await setup.gate.submit(CALL)
    assert type(answer).__name__.lower() == case.answer
    assert len(setup.tools.performed) == (1 if case.answer == "returned" else 0)
    if case.reason:
        assert isinstance(answer, Refused)
        assert case.reason in answer.reason


@pytest.mark.parametrize("case", SPENDINGS, ids=lambda case: case.id)
async def test_budget(case: Spending) -> None:
    journal = await opened(case.limits)
    tree = InMemoryTreeBudget(case.tree) if case.tree is not None else None
    budget = Budget(journal, turn_limits=Limits(), tree=tree)
    for number, step in enumerate(case.steps):
        if step.restart:
            budget = Budget(journal, turn_limits=Limits(), tree=tree)
        else:
            assert await _spend(budget, journal, step, number) == step.expect
    wanted = msgspec.convert(case.spent, Amount, strict=False)
    assert [getattr(budget.spent, each) for each in case.spent] == [
        getattr(wanted, each) for each in case.spent
    ]
    assert {each: budget.remaining(each) for each in DIMENSIONS if each in case.remaining} == case.remaining
    if tree is not None:
        assert {each: getattr(tree.spent, each) for each in case.tree_spent} == case.tree_spent
    if case.is_over:
        with pytest.raises(BudgetExceeded):
            await budget.check()


async def _spend(budget: Budget, journal: Journal, step: Step, number: int) -> str:
    try:
        amount = msgspec.convert(step.spend, Amount, strict=False)
    except (InvalidInput, msgspec.ValidationError):
        return "error"
    try:
        held = await budget.reserve(amount)
    except BudgetExceeded:
        return "refused"
    # A settled call counts itself, so the one that the case spends is that one.
    spent = msgspec.structs.replace(amount, calls=max(0, amount.calls - 1))
    await journal.append(CallSettled(call=call_id(1, number), status="ok", amount=spent))
    budget.release(held)
    return "ok"


@pytest.mark.parametrize("case", SHARES, ids=lambda case: case.id)
def test_sharing(case: Share) -> None:
    if case.shares is None:
        with pytest.raises(InvalidInput):
            case.limits.shares(case.weights)
    else:
        assert case.limits.shares(case.weights) == case.shares
