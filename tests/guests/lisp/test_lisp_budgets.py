"""Budgets inside a program: N units are usable, never N+1, and inner budgets charge the outer ones."""

from decimal import Decimal

import pytest
from tests.guests.lisp.programs import Host, run, value

from holdfast.core import Amount, Answer, Json, JsonObject, Refused, Returned
from holdfast.guests.contract import GuestLimits
from holdfast.guests.lisp import outcome_of

COUNT = "(define rounds 0) (define (body) (set! rounds (+ rounds 1)) rounds)"
CASES: dict[str, tuple[str, Json]] = {
    "B1 three iterations are exactly three": (
        f"{COUNT} (define o (with-budget {{:iterations 3}} (fixpoint/outcome (body) :watch '(bindings))))"
        " (list (outcome-tag o) (outcome-field o :reason) (outcome-field o :dimension) (outcome-field o :iterations) rounds)",
        ["nonconverged", "budget", "iterations", 3, 3],
    ),
    "B1 no iteration at all": (
        f"{COUNT} (list (outcome-tag (with-budget {{:iterations 0}} (fixpoint/outcome (body)))) rounds)",
        ["nonconverged", 0],
    ),
    "B3 nil is unlimited": ("(with-budget {:iterations nil :tokens nil} (budget-remaining :iterations))", None),
    "B3 without a budget everything is unlimited": ("(budget-remaining :tokens)", None),
    "B4 a negative limit is an error": ("(outcome-field (try (with-budget {:tokens -1} 1)) :code)", "type-error"),
    "B4 an unknown dimension is an error": ("(outcome-field (try (with-budget {:wishes 3} 1)) :code)", "type-error"),
    "B6 what remains": ("(with-budget {:calls 3} (world/list) (budget-remaining :calls))", 2),
    "B7 an inner budget has what the outer one has left": (
        "(with-budget {:calls 3} (world/list) (with-budget {:calls 3} (budget-remaining :calls)))",
        2,
    ),
    "B8 an inner budget cannot exceed the outer one": (
        "(with-budget {:calls 2} (with-budget {:calls 9} (budget-remaining :calls)))",
        2,
    ),
    "B8 an inner budget charges the outer one": (
        "(with-budget {:calls 5} (with-budget {:calls 2} (world/list) (world/list)) (budget-remaining :calls))",
        3,
    ),
    "B8 an exhausted inner budget ends alone": (
        "(with-budget {:calls 5} (list (outcome-tag (with-budget {:calls 1} (world/list) (world/list))) (budget-remaining :calls)))",
        ["nonconverged", 4],
    ),
    "B8 an exhausted outer budget ends the inner ones": (
        "(define after 0) (list (outcome-field (with-budget {:calls 1} (with-budget {:calls 9} (world/list) (world/list)) (set! after 1)) :dimension) after)",
        ["calls", 0],
    ),
    "B9 a budget in four equal parts": (
        "(budget-split {:tokens 100 :calls 10 :cost 1.0 :time nil} 4)",
        [{"tokens": 25, "calls": 2, "cost": 0.25, "time": None}] * 4,
    ),
    "B9 no parts": ("(outcome-field (try (budget-split {:tokens 100} 0)) :code)", "type-error"),
    "B9 a negative number of parts": ("(outcome-field (try (budget-split {:tokens 100} -1)) :code)", "type-error"),
    "B9 no weights": ("(outcome-field (try (budget-allocate {:tokens 100} '())) :code)", "type-error"),
    "B9 weights that are all 0": ("(outcome-field (try (budget-allocate {:tokens 9} '(0 0))) :code)", "type-error"),
    "B10 a budget by weights": (
        "(budget-allocate {:tokens 100} '(1 2 1))",
        [{"tokens": 25}, {"tokens": 50}, {"tokens": 25}],
    ),
    "B10 a share is a budget": (
        "(with-budget (first (budget-split {:calls 4} 2)) (world/list) (budget-remaining :calls))",
        1,
    ),
    "B11 an inner limit can only be lower": (
        "(with-budget {:calls 3 :tokens 10} (with-budget {:calls 9 :tokens 5}"
        " (list (budget-remaining :calls) (budget-remaining :tokens))))",
        [3, 5],
    ),
    "try does not catch an exhausted budget": (
        "(outcome-tag (with-budget {:calls 0} (try (world/list)) \"went on\"))",
        "nonconverged",
    ),
    "a body within its budget returns its value": ("(with-budget {:steps 1000 :calls 1} (+ 1 2))", 3),
    "steps": (
        "(outcome-field (with-budget {:steps 500} (let loop () (loop))) :dimension)",
        "steps",
    ),
    "the program continues after an exhausted budget": (
        "(with-budget {:steps 500} (let loop () (loop))) (reduce + 0 (range 1000))",
        499500,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_budget(case: str) -> None:
    code, expected = CASES[case]

    assert await value(code, Host(files={"a": ""})) == expected


def reply(*, tokens: int, cost: str = "0") -> Returned:
    """The host's answer to a model call: text, tokens and cost."""
    return Returned(value="reply", amount=Amount(tokens=tokens, cost_usd=Decimal(cost)))


async def test_b2_all_tokens_are_usable_and_the_next_call_is_not_made() -> None:
    host = Host(answers={"llm.complete": reply(tokens=500)})
    code = """(define got '())
    (define (ask) (set! got (cons (llm/complete "why?" :max-tokens 800) got)))
    (define o (with-budget {:tokens 1000} (ask) (ask) (ask)))
    (list got (outcome-field o :dimension))"""

    assert await value(code, host) == [["reply", "reply"], "tokens"]
    assert [given["max_tokens"] for _, given in host.calls] == [800, 500]


async def test_the_cost_of_replies_is_charged() -> None:
    host = Host(answers={"llm.complete": reply(tokens=5, cost="0.5")})
    code = '(outcome-field (with-budget {:cost 1.0} (let loop () (llm/complete "x") (loop))) :dimension)'

    assert await value(code, host) == "cost"
    assert host.count("llm.complete") == 2


async def test_every_call_that_costs_something_is_charged() -> None:
    host = Host(answers={"desk.search": reply(tokens=40)})
    code = '(with-budget {:tokens 100} (call "desk.search") (budget-remaining :tokens))'

    assert await value(code, host) == 60


async def test_a_fixpoint_calls_the_host_for_each_round_and_ends_when_none_is_left() -> None:
    def rounds(given: JsonObject) -> Answer:
        if len(requested) == 3:
            return Refused(reason="no iterations are left", rule="budget", exhausted="iterations")
        requested.append(given["round"])
        return Returned()

    requested: list[Json] = []
    code = f"{COUNT} (define o (fixpoint/outcome (body))) (list (outcome-tag o) (outcome-field o :reason) (outcome-value o) rounds)"

    assert await value(code, Host(answer_functions={"fixpoint": rounds})) == ["nonconverged", "budget", 3, 3]
    assert len(set(requested)) == 3


async def test_b5_a_time_budget_ends_the_body() -> None:
    ended = await run("(outcome-field (with-budget {:time 0.01} (let loop () (loop))) :dimension)")

    assert ended.value == "time"


LIMITS = {
    "steps": (GuestLimits(steps=1000), "(let loop () (loop))"),
    "seconds": (GuestLimits(seconds=0.05), "(let loop () (loop))"),
    "wall_seconds": (GuestLimits(wall_seconds=0.05), "(let loop () (loop))"),
    "calls": (GuestLimits(calls=3), "(let loop () (world/list) (loop))"),
    "output_bytes": (GuestLimits(output_bytes=100), '(let loop () (print "flood") (loop))'),
    "memory_bytes": (GuestLimits(memory_bytes=1 << 20), "(let loop ((all '())) (loop (cons 1 all)))"),
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_each_limit_of_a_run_has_its_own_error(limit: str) -> None:
    limits, code = LIMITS[limit]
    ended = await run(code, limits=limits)

    assert ended.status == "limit"
    assert ended.error.startswith(f"{limit}: ")
    assert outcome_of(ended).dimension == limit  # type: ignore[union-attr]


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_program_cannot_catch_a_limit_of_its_run(limit: str) -> None:
    limits, code = LIMITS[limit]
    ended = await run(f"(try {code}) (with-budget {{:steps 10000000}} {code})", limits=limits)

    assert ended.status == "limit"


async def test_b13_all_steps_are_usable_and_no_more() -> None:
    code = "(+ 1 2)"
    used = (await run(code)).steps

    assert (await run(code, limits=GuestLimits(steps=used))).status == "ok"
    stopped = await run(code, limits=GuestLimits(steps=used - 1))
    assert (stopped.status, stopped.steps) == ("limit", used - 1)


async def test_garbage_does_not_count_as_memory_in_use() -> None:
    code = (
        '(let loop ((i 0)) (if (= i 20000) i (begin (list i i i i) (string-repeat "x" 1000) (loop (+ i 1)))))'
    )
    ended = await run(code, limits=GuestLimits(memory_bytes=4 << 20))

    assert (ended.status, ended.value) == ("ok", 20000)


async def test_texts_are_limited_below_the_memory_of_a_run() -> None:
    """They live in the process of the host, which all sessions share."""
    code = '(let loop ((all (list))) (loop (cons (string-repeat "x" 10000000) all)))'
    ended = await run(code, limits=GuestLimits(memory_bytes=1 << 30))

    assert (ended.status, ended.error) == ("limit", "memory_bytes: the run needs more than 134217728 bytes")
