"""The numbered outcome cases as data: programs of one session, and what changes between them."""

from dataclasses import dataclass

import pytest
from tests.guests.lisp.programs import Host, new_guest

from holdfast.core import EscalationId, Json, Parked, Returned
from holdfast.guests.contract import RunRequest
from holdfast.guests.lisp import outcome_of


@dataclass(frozen=True)
class Write:
    """Another process changes a file between two programs."""

    content: str


@dataclass(frozen=True)
class Restart:
    """The session continues in another guest, from a snapshot."""


@dataclass(frozen=True)
class Answer:
    """A person answers the parked call of the last program; `then` is the value of the program."""

    value: Json
    then: Json


Step = tuple[str, Json] | Write | Restart | Answer
"""A program and its value, or a change in between. The workspace is one file, `a.txt`, with the text `one`."""

CASES: dict[str, tuple[Step, ...]] = {
    "O1": (("(outcome-tag (try 3))", "ok"), ("(+ 1 2)", 3)),
    "O2": (("(ok 3)", {"outcome": "ok", "value": 3}),),
    "O3": (("(outcome-field (try (world/delete \"a.txt\")) :code)", "policy-violation"),),
    "O4": (
        ("(outcome-tag (bind (needs 'approval \"x\") (lambda (v) (error \"ran\"))))", "needs"),
        ("(outcome-tag (bind (failed \"x\") (lambda (v) (error \"ran\"))))", "error"),
        ("(outcome-value (bind (proposed 7) (lambda (v) (error \"ran\"))))", 7),
        ("(bind (ok 2) (lambda (v) (* v 3)))", 6),
    ),
    "O5": (("(outcome-field (fixpoint/outcome 5) :iterations)", 1),),
    "O6": (
        ("(define x 1) (define o (fixpoint/outcome (set! x (min 5 (+ x 1))) x))", None),
        ("(list (outcome-value o) (outcome-field o :iterations))", [5, 5]),
    ),
    "O7": (
        ("(define x 0) (define o (fixpoint/outcome (set! x (+ x 1)) x :max 2))", None),
        ("(list (outcome-tag o) (outcome-value o))", ["nonconverged", 2]),
    ),
    "O8": (
        ("(define x 'a) (define next {:a 'b :b 'c :c 'a})", None),
        ("(outcome-field (fixpoint/outcome (set! x (get next x))) :length)", 3),
    ),
    "O9": (("(outcome-field (try (fixpoint 1 :max -1)) :code)", "type-error"),),
    "O10": (("(assert 'sky)", True), ("(assert 'sky)", False)),
    "O11": (
        ("(fact/put! 'color \"red\")", True),
        ("(outcome-field (try (fact/put! 'color \"blue\")) :code)", "fact-conflict"),
    ),
    "O12": (
        ("(assert 'outer) (subeval '(begin (assert 'inner) (facts)))", ["inner"]),
        ("(facts)", ["outer"]),
    ),
    "O13": (("(outcome-field (try (assert (lambda () 1))) :code)", "type-error"),),
    "O14": (
        ("(define (f) (memo (list \"a.txt\") (world/read \"a.txt\"))) (list (f) (f))", ["one", "one"]),
        ("(get (memo/stats) :hits)", 1),
        Write("two"),
        ("(list (f) (get (memo/stats) :hits))", ["two", 1]),
    ),
    "O15": (
        ("(define (f) (memo/auto (world/read \"a.txt\"))) (f)", "one"),
        Restart(),
        ("(list (f) (get (memo/stats) :hits))", ["one", 1]),
        Write("two"),
        Restart(),
        ("(f)", "two"),
    ),
    "O16": (
        ("(define (f x) (memo (list) x)) (f 1) (f 2) (f 1)", 1),
        ("(list (get (memo/stats) :size) (get (memo/stats) :evictions))", [1, 2]),
    ),
    "O17": (
        ("(define e (evidence \"a.txt\" 1 1)) (list (get e :snippet) (evidence/verify e))", ["one", "valid"]),
        ("(assert 'says-one e) (evidence/verify (get (fact 'says-one) :evidence))", "valid"),
        ("(evidence/verify (put e :snippet \"other\"))", "content-mismatch"),
        Write("two"),
        ("(evidence/verify e)", "stale"),
        Restart(),
        ("(evidence/verify (get (fact 'says-one) :evidence))", "stale"),
    ),
    "O18": (
        ("(list \"said\" (call \"person.ask\" :question \"go on?\"))", None),
        Answer("yes", ["said", "yes"]),
    ),
}  # fmt: skip


def test_no_case_is_missing() -> None:
    assert list(CASES) == [f"O{number}" for number in range(1, 19)]


@pytest.mark.parametrize("case", CASES)
async def test_case(case: str) -> None:
    """Run the steps of a case in one session with space for a single artifact."""
    waits = Parked(escalation=EscalationId("e"))
    host = Host(files={"a.txt": "one"}, answers={"person.ask": waits}, refused=frozenset({"world.delete"}))
    guest, request, snapshot = new_guest(memo_capacity=1), RunRequest(code=""), b""
    for step in CASES[case]:
        match step:
            case Write(content):
                host.files["a.txt"] = content
            case Restart():
                state, guest = await guest.snapshot(), new_guest(memo_capacity=1)
                await guest.restore(state)
            case Answer(value, then):
                ended = await new_guest().resume(snapshot, Returned(value=value), request, host)
                assert ended.value == then
            case code, expected:
                request = RunRequest(code=code)
                ended = await guest.run(request, host)
                assert (ended.value, ended.error) == (expected, "")
                snapshot = ended.snapshot or b""


async def test_o1_a_plain_value_is_an_ok_outcome() -> None:
    assert outcome_of(await new_guest().run(RunRequest(code="(+ 1 2)"), Host())).value == 3  # type: ignore[union-attr]
