"""Outcomes, fixpoints, facts and memos in detail; test_lisp_cases.py has each case under its number."""

import pytest
from tests.guests.lisp.programs import Host, new_guest, run, value

from holdfast.core import Json
from holdfast.guests.lisp import outcome_of

CASES: dict[str, tuple[str, Json]] = {
    "O2 an outcome passes through": (
        "(needs 'evidence \"where is it?\" {:file \"a\"})",
        {"outcome": "needs", "need": "evidence", "description": "where is it?", "context": {"file": "a"}},
    ),
    "O4 bind continues with ok": ("(bind (ok 2) (lambda (v) (ok (* v 3))))", {"outcome": "ok", "value": 6}),
    "O4 bind returns needs": (
        "(outcome-tag (bind (needs 'approval \"x\") (lambda (v) (error \"ran\"))))",
        "needs",
    ),
    "O4 bind returns error": ("(outcome-tag (bind (failed \"x\") (lambda (v) (error \"ran\"))))", "error"),
    "O4 bind returns proposed": (
        "(outcome-value (bind (proposed 7 '(\"a\")) (lambda (v) (error \"ran\"))))",
        7,
    ),
    "O4 outcome-do stops at the first that is not ok": (
        "(outcome-tag (outcome-do ((a (ok 1)) (b (nonconverged a 3)) (c (error \"ran\"))) (ok c)))",
        "nonconverged",
    ),
    "O4 outcome-do binds in order": (
        "(outcome-do ((a (ok 1)) (b (ok (+ a 1)))) (ok (list a b)))",
        {"outcome": "ok", "value": [1, 2]},
    ),
    "O5 identity converges in one round": (
        "(fixpoint/outcome 5)",
        {"outcome": "ok", "value": 5, "iterations": 1},
    ),
    "O6 from 1 to 5 takes five rounds": (
        "(define x 1) (fixpoint/outcome (set! x (min 5 (+ x 1))) x)",
        {"outcome": "ok", "value": 5, "iterations": 5},
    ),
    "O6 fixpoint gives the value itself": ("(define x 1) (fixpoint (set! x (min 5 (+ x 1))) x)", 5),
    "O7 it does not converge in two": (
        "(define x 0) (fixpoint/outcome (set! x (+ x 1)) x :max 2)",
        {"outcome": "nonconverged", "value": 2, "iterations": 2, "reason": "max-iterations"},
    ),
    "O8 a, b, c, a is a cycle of three": (
        "(define x 'a) (define next {:a 'b :b 'c :c 'a})"
        "(let ((o (fixpoint/outcome (set! x (get next x)) x))) (list (outcome-tag o) (outcome-field o :length)"
        " (length (outcome-field o :signatures))))",
        ["cycle", 3, 3],
    ),
    "O9 a negative number of rounds is an error": ("(outcome-field (try (fixpoint 1 :max -1)) :code)", "type-error"),
    "O10 a fact is new once": ("(list (assert '(sky blue)) (assert '(sky blue)) (facts))", [True, False, [["sky", "blue"]]]),
    "O10 facts keep their order": ("(assert 'b) (assert 'a) (assert 'b) (facts)", ["b", "a"]),
    "O10 a fact keeps its first evidence": (
        "(assert 'a \"first\") (assert 'a \"second\") (get (fact 'a) :evidence)",
        "first",
    ),
    "O11 another value for a key is an error": (
        "(fact/put! 'color \"red\") (list (fact/get 'color) (fact/put! 'color \"red\")"
        " (outcome-field (try (fact/put! 'color \"blue\")) :code) (fact/get 'color))",
        ["red", False, "fact-conflict", "red"],
    ),
    "O12 a subeval sees no facts of the parent": ("(assert 'outer) (subeval '(list (fact? 'outer) (facts)))", [False, []]),
    "O12 facts of a subeval do not leak": ("(subeval '(assert 'inner)) (list (fact? 'inner) (facts))", [False, []]),
    "O12 a subeval sees only its bindings": (
        "(define secret 1) (list (subeval '(+ y 1) {:y 4}) (outcome-field (try (subeval 'secret)) :code))",
        [5, "unbound-variable"],
    ),
    "O12 an eval inside a subeval stays inside": (
        "(define secret 1) (outcome-field (try (subeval '(eval 'secret))) :code)",
        "unbound-variable",
    ),
    "O12 what a subeval defines does not leak": (
        "(subeval '(define leaked 1)) (outcome-field (try leaked) :code)",
        "unbound-variable",
    ),
    "O12 a subeval that fails restores the facts": (
        "(assert 'outer) (try (subeval '(begin (assert 'inner) (error \"x\")))) (facts)",
        ["outer"],
    ),
    "O13 a procedure is not a fact": ("(outcome-field (try (assert (lambda () 1))) :code)", "type-error"),
    "O13 not even inside a list": ("(outcome-field (try (fact? (list 1 car))) :code)", "type-error"),
    "numbers are one fact whole or decimal": ("(assert '(n 1)) (fact? '(n 1.0))", True),
    "text cannot imitate a list": ("(assert '(\"a\" \"b\")) (fact? '(\"a\\\",s:\\\"b\"))", False),
    "a fixpoint watches facts": (
        "(define n 0) (fixpoint/outcome (assert (min 3 (+ 1 (length (facts))))) (length (facts)) :watch '(facts))",
        {"outcome": "ok", "value": 3, "iterations": 4},
    ),
    "a fixpoint watches local names": (
        "(let ((x 0)) (fixpoint (set! x (min 4 (+ x 1))) x :watch '(bindings)))",
        4,
    ),
    "a fixpoint that fails has a code": (
        "(define x 0) (outcome-field (try (fixpoint (set! x (+ x 1)) x :max 3 :watch '(bindings))) :code)",
        "nonconverged",
    ),
    "a cycle has a code": (
        "(define x #t) (outcome-field (try (fixpoint (set! x (not x)) :watch '(bindings))) :code)",
        "cycle",
    ),
    "success and blocked": (
        "(map (lambda (o) (list (success? o) (blocked? o))) (list (ok) (proposed 1) (needs 'primitive \"p\") (failed \"e\") (cycle 1 2) (nonconverged 1 2)))",
        [[True, False], [True, False], [False, True], [False, True], [False, False], [False, False]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_outcomes_fixpoints_and_facts(case: str) -> None:
    code, expected = CASES[case]

    assert await value(code) == expected


OUTCOMES = [
    "(ok 1)",
    '(proposed 1 (list "a"))',
    '(needs \'approval "x")',
    "(nonconverged 1 2)",
    "(cycle 1 2)",
    '(failed "x" \'c)',
]


@pytest.mark.parametrize("code", OUTCOMES)
async def test_o2_every_outcome_reaches_the_host(code: str) -> None:
    ended = await run(code)

    assert isinstance(ended.value, dict)
    assert type(outcome_of(ended)).__name__.lower() == ended.value["outcome"]


async def test_a_table_that_resembles_an_outcome_is_a_value() -> None:
    outcome = outcome_of(await run('{:outcome "ok" :value 1 :more 2} {:outcome "strange"}'))

    assert outcome.value == {"outcome": "strange"}  # type: ignore[union-attr]


async def test_o3_a_refused_call_is_a_policy_violation() -> None:
    ended = await run('(world/write "a.txt" "x")', Host(refused=frozenset({"world.write"})))

    outcome = outcome_of(ended)
    assert outcome.code == "policy-violation"  # type: ignore[union-attr]
    assert "Operation not allowed: world.write" in ended.error


async def test_o14_a_memo_is_reused_until_a_dependency_changes() -> None:
    host, guest = Host(files={"a.txt": "one"}), new_guest()
    code = (
        '(define (f) (memo (list "a.txt") (string-upcase (world/read "a.txt")))) (list (f) (f) (memo/stats))'
    )

    first = await value(code, host, guest=guest)
    assert isinstance(first, list)
    assert first[:2] == ["ONE", "ONE"]
    assert host.count("world.read") == 1
    host.files["a.txt"] = "two"
    assert await value("(f)", host, guest=guest) == "TWO"
    host.files["a.txt"] = "one"
    assert await value("(f)", host, guest=guest) == "ONE"
    assert host.count("world.read") == 2


async def test_a_memo_depends_on_the_values_it_refers_to() -> None:
    host = Host()

    assert await value(
        "(define (f x) (memo (list) (* x x))) (list (f 2) (f 3) (f 2) (get (memo/stats) :hits))", host
    ) == [4, 9, 4, 1]


async def test_a_memo_depends_on_the_procedures_it_calls() -> None:
    code = "(define (g) 1) (define (f) (memo (list) (g))) (define one (f)) (define (g) 2) (list one (f))"

    assert await value(code) == [1, 2]


async def test_a_memo_depends_on_the_variables_of_a_closure() -> None:
    code = "(define (adder n) (lambda (x) (+ x n))) (define (f g) (memo (list) (g 1))) (list (f (adder 1)) (f (adder 10)))"

    assert await value(code) == [2, 11]


async def test_memo_auto_finds_its_dependencies() -> None:
    host, guest = Host(files={"a.txt": "one", "b.txt": "x"}), new_guest()
    await value('(define (f) (memo/auto (world/read "a.txt")))', host, guest=guest)

    assert await value("(list (f) (f))", host, guest=guest) == ["one", "one"]
    assert host.count("world.read") == 1
    host.files["b.txt"] = "changed"
    assert await value("(f)", host, guest=guest) == "one"
    assert host.count("world.read") == 1
    host.files["a.txt"] = "two"
    assert await value("(f)", host, guest=guest) == "two"


async def test_memo_auto_of_a_listing_depends_on_all_files() -> None:
    host, guest = Host(files={"a.txt": "one"}), new_guest()
    await value("(define (f) (memo/auto (length (world/list))))", host, guest=guest)

    assert await value("(list (f) (f))", host, guest=guest) == [1, 1]
    host.files["b.txt"] = "new"
    assert await value("(f)", host, guest=guest) == 2


async def test_an_outer_memo_has_the_dependencies_of_the_inner_one() -> None:
    host, guest = Host(files={"a.txt": "one"}), new_guest()
    await value(
        '(define (inner) (memo/auto (world/read "a.txt"))) (define (outer) (memo/auto (str "<" (inner) ">")))',
        host,
        guest=guest,
    )

    assert await value("(list (inner) (outer))", host, guest=guest) == ["one", "<one>"]
    host.files["a.txt"] = "two"
    assert await value("(outer)", host, guest=guest) == "<two>"


async def test_a_file_that_changes_while_it_is_read_makes_the_memo_stale() -> None:
    host, guest = Host(files={"a.txt": "one"}), new_guest()
    code = '(define (f) (memo/auto (let ((text (world/read "a.txt"))) (world/write "a.txt" "two") text))) (f)'

    assert await value(code, host, guest=guest) == "one"
    assert await value("(f)", host, guest=guest) == "two"


async def test_memos_can_be_inspected() -> None:
    host = Host(files={"a.txt": "one"})
    code = """
    (define before (memo/cached? (list "a.txt") (+ 1 2)))
    (memo (list "a.txt") (+ 1 2))
    (define after (memo/cached? (list "a.txt") (+ 1 2)))
    (memo/auto (world/read "a.txt"))
    (define deps (memo/deps (world/read "a.txt")))
    (define none (memo/deps (world/read "other.txt")))
    (memo/clear!)
    (list before after deps none (memo/cached? (list "a.txt") (+ 1 2)) (get (memo/stats) :size))
    """

    assert await value(code, host) == [False, True, ["a.txt"], None, False, 0]


async def test_o15_a_stale_artifact_is_not_returned_after_a_restore() -> None:
    host, guest, other = Host(files={"a.txt": "one"}), new_guest(), new_guest()
    await value('(define (f) (memo/auto (world/read "a.txt"))) (f)', host, guest=guest)
    await other.restore(await guest.snapshot())

    assert await value("(f)", host, guest=other) == "one"
    assert host.count("world.read") == 1
    host.files["a.txt"] = "two"
    await other.restore(await guest.snapshot())
    assert await value("(f)", host, guest=other) == "two"


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("eval", "(eval '(+ 1 2))"),
        ("subeval", "(subeval '(+ 1 2))"),
        ("memo", "(memo (list) 1)"),
        ("memo", "(memo/auto 1)"),
        ("memo", "(memo/stats)"),
        ("memo", "(memo/clear!)"),
        ("fixpoint", "(fixpoint 1)"),
        ("fixpoint", "(fixpoint/outcome 1)"),
        ("assert", "(assert 'a)"),
        ("assert", "(fact/put! 'a 1)"),
        ("fact?", "(fact? 'a)"),
        ("facts", "(facts)"),
        ("facts", "(facts/signature)"),
    ],
)
async def test_a_policy_can_forbid_each_language_feature(operation: str, code: str) -> None:
    ended = await run(code, Host(refused=frozenset({operation})))

    assert ended.status == "error"
    assert isinstance(ended.value, dict)
    assert ended.value["code"] == "policy-violation"


async def test_a_language_feature_is_requested_once_per_run() -> None:
    host, guest = Host(), new_guest()
    await value("(assert 'a) (assert 'b) (eval '(assert 'c))", host, guest=guest)

    assert (host.count("assert"), host.count("eval")) == (1, 1)
    await value("(assert 'd)", host, guest=guest)
    assert host.count("assert") == 2


async def test_a_refused_language_feature_is_requested_again() -> None:
    host = Host(refused=frozenset({"eval"}))
    await run("(try (eval '1)) (eval '2)", host)

    assert host.count("eval") == 2


async def test_a_macro_cannot_bypass_the_policy() -> None:
    ended = await run("(define-macro (sneak) (eval '(quote 1))) (sneak)", Host(refused=frozenset({"eval"})))

    assert ended.status == "error"
    assert "a macro cannot use 'eval'" in ended.error


async def test_internal_procedures_are_not_accessible() -> None:
    for name in ("%eval", "%assert", "%memo-put", "%operate", "%use"):
        ended = await run(name)
        assert "unbound-variable" in ended.error, name
