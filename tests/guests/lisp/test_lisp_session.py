"""Lisp in a session: the same events charge the program's budgets and the session's."""

from decimal import Decimal

from tests.guests.lisp.programs import KEY

from holdfast.core import Limits, ModelMessage, Nonconverged, Ok, TextPart, Usage
from holdfast.guests.lisp import LanguageToolset, lisp_engine
from holdfast.models import Reply, ScriptedModel
from holdfast.testing import memory_session

COUNT = "(define n 0) (define (again) (fixpoint/outcome (set! n (+ n 1)) n :watch '(bindings)))"
ANSWER = Reply(
    message=ModelMessage(parts=(TextPart(text="because"),)),
    usage=Usage(input_tokens=60, output_tokens=40, cost_usd=Decimal("0.5")),
    finish="stop",
)


async def test_each_round_of_a_fixpoint_is_an_iteration_of_the_session() -> None:
    async with memory_session(
        engine=lisp_engine(key=KEY), toolsets=[LanguageToolset()], limits=Limits(iterations=6)
    ) as session:
        outcome = await session.execute(f"{COUNT} (again)")
        assert isinstance(outcome, Nonconverged)
        assert (outcome.reason, outcome.dimension) == ("budget", "iterations")
        assert session.budget.spent.iterations == 6


async def test_a_fixpoint_that_converges_is_charged_for_its_rounds() -> None:
    async with memory_session(engine=lisp_engine(key=KEY), toolsets=[LanguageToolset()]) as session:
        outcome = await session.execute(
            "(define x 1) (fixpoint (set! x (min 5 (+ x 1))) x :watch '(bindings))"
        )
        assert isinstance(outcome, Ok)
        assert (outcome.value, session.budget.spent.iterations) == (5, 1 + 5)
        assert [entry.operation for entry in session.audit()] == ["fixpoint"] * 5


async def test_a_budget_is_charged_the_actual_tokens_and_cost_of_a_reply() -> None:
    code = """(with-budget {:tokens 1000 :cost 2.0}
      (list (llm/complete "why?") (budget-remaining :tokens) (budget-remaining :cost)))"""
    async with memory_session(model=ScriptedModel([ANSWER]), engine=lisp_engine(key=KEY)) as session:
        outcome = await session.execute(code)
        assert isinstance(outcome, Ok)
        assert outcome.value == ["because", 900, 1.5]
        assert (session.budget.spent.tokens, session.budget.spent.cost_usd) == (100, Decimal("0.5"))


async def test_a_cost_budget_ends_an_endless_series_of_model_calls() -> None:
    code = '(outcome-field (with-budget {:cost 1.0} (let loop () (llm/complete "x") (loop))) :dimension)'
    async with memory_session(model=ScriptedModel([ANSWER]), engine=lisp_engine(key=KEY)) as session:
        outcome = await session.execute(code)
        assert isinstance(outcome, Ok)
        assert (outcome.value, session.budget.spent.cost_usd) == ("cost", Decimal("1.0"))
