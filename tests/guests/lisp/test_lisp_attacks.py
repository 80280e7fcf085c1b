"""Hostile programs: each ends in a clear error; none exhausts the stack, memory or time of the host or other sessions."""

import asyncio

import pytest
from tests.guests.lisp.programs import Host, new_guest, run, value

from holdfast.core import EscalationId, Parked, Returned
from holdfast.core.errors import SnapshotRefused
from holdfast.guests.contract import GuestLimits, RunRequest
from holdfast.guests.lisp import LispEngine

DAG = (
    "(define (dag n head) (let loop ((i 0) (x '(1))) (if (= i n) x (loop (+ i 1) (append head (list x x))))))"
)
NEST = "(define (nest n) (let loop ((i 0) (x '())) (if (= i n) x (loop (+ i 1) (list x)))))"
BIG = "(define big (range 40000))"
TEXT = '(define big (string-repeat "a" 2000000))'
COPY = '(define copy (string-append (substring big 1) "a"))'
MANY = "(map (lambda (i) big) (range 1000))"
SAME = "(define n 1) " + " ".join(f"(define a{i} big)" for i in range(20))

ENDS = {
    "never closed": ("(" * 50_000, "syntax-error"),
    "nested too deep to return": (f"{NEST} (nest 5000)", "too-deep"),
    "nested too deep for an argument": (f'{NEST} (call "a.b" :x (nest 5000))', "too-deep"),
    "scopes too deep": ("(let ((x 1)) " * 300 + "x" + ")" * 300, "syntax-error"),
    "too many parameters": ("(lambda (" + " ".join(f"a{i}" for i in range(300)) + ") 1)", "syntax-error"),
    "a form with too many parts": ("(list " + "(f)" * 60_000 + ")", "syntax-error"),
    "a tree of shared parts, printed": (f"{DAG} (print (dag 60 '()))", "too-large"),
    "a tree of shared parts, as text": (f"{DAG} (str (dag 60 '()))", "too-large"),
    "a tree of shared parts, returned": (f"{DAG} (dag 60 '())", "too-large"),
    "a tree of shared parts, asserted": (f"{DAG} (assert (dag 60 '()))", "too-large"),
    "a tree of shared parts, evaluated": (f"{DAG} (eval (dag 60 '(begin)))", "syntax-error"),
    "a tree of shared parts, in a template": (f"{DAG} (eval (list 'quasiquote (dag 60 '())))", "syntax-error"),
    "a number that grows": ("(let loop ((x 3)) (loop (* x x)))", "number-overflow"),
    "a power of powers": ("(expt (expt 10 1000) (expt 10 1000))", "number-overflow"),
    "a decimal that grows": ("(let loop ((x 3.0)) (loop (* x x)))", "number-overflow"),
    "a large number and a decimal": ("(+ (expt 2 4000) 0.5)", "number-overflow"),
    "a string that grows": ('(let loop ((s "x")) (loop (string-append s s)))', "too-large"),
    "a string of a terabyte": ('(string-repeat "x" 1000000000000)', "too-large"),
    "a replacement that grows": ('(string-replace (string-repeat "x" 100000000) "x" "yyyyyyyyyy")', "too-large"),
    "a list of everything": ("(range 100000000000000000000000)", "too-large"),
    "a list that grows": ("(let loop ((x '(1))) (loop (append x x)))", "too-large"),
    "a macro of itself": ("(define-macro (m) '(m)) (m)", "macro-error"),
    "a macro of two of itself": ("(define-macro (m) '(begin (m) (m))) (m)", "macro-error"),
    "a macro that never ends": ("(define-macro (m) (let loop () (loop))) (m)", "macro-error"),
    "a macro that asks the host": ('(define-macro (m) (world/read "a")) (m)', "macro-error"),
    "a list appended a thousand times": (f"{BIG} (apply append {MANY})", "too-large"),
    "text of many shared copies, asserted": (f"{TEXT} (assert {MANY})", "too-large"),
    "text of many shared copies, returned": (f"{TEXT} {MANY}", "too-large"),
    "keys of many shared copies, returned": (f"{TEXT} (define big (table big 1)) {MANY}", "too-large"),
    "text of many shared copies, sought": (f'{TEXT} (member (string-append (substring big 1) "b") {MANY})', "too-large"),
    "text of many shared copies, compared": (f'{TEXT} {COPY} (equal? {MANY} {MANY.replace("big", "copy")})', "too-large"),
    "a huge name": (f"{TEXT} (string->symbol big)", "too-large"),
    "a huge name in the program": ("x" * 200_000, "syntax-error"),
    "a state that is watched a thousand times": (f"{BIG} {SAME} (fixpoint (set! n (+ n 1)))", "too-large"),
    "budgets in budgets": ("(define (go) (with-budget {:calls 5} (+ 1 (go)))) (go)", "too-deep"),
    "text with half a pair": ('(string->symbol "\\u{dfff}")', "syntax-error"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ENDS)
@pytest.mark.promise("P01")
async def test_an_attack_ends_in_a_clear_error(attack: str) -> None:
    code, expected = ENDS[attack]
    ended = await run(code)

    assert ended.status in ("error", "refused")
    assert f"{expected}: " in ended.error


FILLS = {
    "pairs": "(let loop ((x '())) (loop (cons 1 x)))",
    "the continuation": "(define (f n) (+ 1 (f n))) (f 0)",
    "frames with many names": "(define (f) " + " ".join(f"(define a{i} 1)" for i in range(200)) + " (+ 1 (f))) (f)",
    "closures": "(let loop ((x '())) (loop (cons (lambda () x) x)))",
    "strings": '(let loop ((x \'())) (loop (cons (string-repeat "x" 1000) x)))',
    "tables": "(let loop ((t {})) (loop {:a t :b 1 :c 2 :d 3}))",
    "integers": "(let loop ((i 0) (x '())) (loop (+ i 1) (cons (+ i (expt 2 4000)) x)))",
    "facts": '(let loop ((i 0)) (assert (list i (string-repeat "x" 10000))) (loop (+ i 1)))',
    "definitions": """(let loop ((i 0))
        (eval `(define ,(string->symbol (str "v" i)) ',(range 1000)))
        (loop (+ i 1)))""",
    "catchers": "(define (f) (try (f))) (f)",
    "subevals": "(define (f) (+ 1 (subeval '(g) (table \"g\" f \"h\" (range 500))))) (f)",
    "answers": "(let loop ((x '())) (loop (cons (world/list) x)))",
    "names": '(let loop ((i 0) (x \'())) (loop (+ i 1) (cons (string->symbol (str (string-repeat "x" 900) i)) x)))',
}  # fmt: skip


@pytest.mark.parametrize("what", FILLS)
async def test_every_kind_of_data_counts_as_memory(what: str) -> None:
    limits = GuestLimits(memory_bytes=1 << 20, calls=100_000)
    ended = await run(FILLS[what], Host(files={f"{i:200}": "" for i in range(50)}), limits=limits)

    assert ended.status == "limit"
    assert ended.error.startswith("memory_bytes: ")


async def test_a_recursion_of_thirty_thousand_works() -> None:
    assert await value("(define (count n) (if (= n 0) 0 (+ 1 (count (- n 1))))) (count 30000)") == 30_000


async def test_a_tail_call_keeps_no_memory() -> None:
    code = "(define (even n) (if (= n 0) #t (odd (- n 1)))) (define (odd n) (if (= n 0) #f (even (- n 1)))) (even 30000)"
    ended = await run(code, limits=GuestLimits(memory_bytes=1 << 20))

    assert ended.value is True


async def test_deep_data_is_compared_saved_and_freed_without_recursion() -> None:
    guest, other = new_guest(), new_guest()
    assert await value(f"{NEST} (define a (nest 5000)) (equal? a (nest 5000))", guest=guest) is True
    await other.restore(await guest.snapshot())

    assert await value("(equal? a (nest 5000))", guest=other) is True


async def test_shared_text_is_saved_once() -> None:
    guest, other = new_guest(), new_guest()
    await value(f"{TEXT} (define all {MANY}) 1", guest=guest)
    snapshot = await guest.snapshot()
    assert len(snapshot) < 3_000_000
    await other.restore(snapshot)

    assert await value("(list (length all) (equal? (nth all 999) big))", guest=other) == [1000, True]


async def test_a_call_with_a_huge_name_is_not_made() -> None:
    host = Host()
    ended = await run(f"{TEXT} (call big)", host)

    assert "too-large: a name has at most 1000 characters" in ended.error
    assert host.calls == []


async def test_a_long_error_is_truncated() -> None:
    ended = await run(f"{TEXT} (error big)", limits=GuestLimits(output_bytes=1000))

    assert ended.status == "error"
    assert len(ended.error) == 1000


@pytest.mark.parametrize(
    "code",
    [
        "(define-macro (m) (let loop ((i 0)) (if (< i 5000) (loop (+ i 1)) 1)))" + "(m) " * 10_000,
        f"{BIG} (let loop () (cycle 1 2 big) (loop))",
    ],
    ids=["macros in many forms", "a long list, over and over"],
)
async def test_many_uninterruptible_pieces_reach_the_time_limit(code: str) -> None:
    ended = await run(code, limits=GuestLimits(seconds=0.2))

    assert ended.status == "limit"
    assert ended.error.startswith("seconds: ")


async def test_a_program_nested_thousands_deep_runs() -> None:
    assert await value("(+ 1 " * 10_000 + "1" + ")" * 10_000) == 10_001


async def test_a_deep_recursion_can_be_parked_and_resumed() -> None:
    code = '(define (dig n) (if (= n 0) (call "ask.person") (+ 1 (dig (- n 1))))) (dig 5000)'
    parked = await new_guest().run(
        RunRequest(code=code), Host(answers={"ask.person": Parked(escalation=EscalationId("e"))})
    )
    assert parked.snapshot is not None
    ended = await new_guest().resume(parked.snapshot, Returned(value=5), RunRequest(code=code), Host())

    assert ended.value == 5_005


async def test_other_tasks_run_during_an_endless_program() -> None:
    served = 0

    async def serve() -> None:
        nonlocal served
        while True:
            served += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(serve())
    await run("(let loop ((x '())) (loop (cons 1 x)))", limits=GuestLimits(steps=100_000))
    other.cancel()

    assert served >= 8


async def test_an_endless_program_can_be_cancelled() -> None:
    guest = new_guest()
    task = asyncio.create_task(run("(define x 1) (let loop () (loop))", guest=guest))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await value("x", guest=guest) == 1


NAMES = [
    "__import__",
    "open",
    "os",
    "sys",
    "globals",
    "getattr",
    "exec",
    "__builtins__",
    "car.__class__",
    "x.y",
    "help",
]


@pytest.mark.parametrize("name", NAMES)
async def test_python_names_are_unbound(name: str) -> None:
    assert "unbound-variable" in (await run(f"({name} 1)")).error
    assert "unbound-variable" in (await run(f'(eval (list (string->symbol "{name}") 1))')).error


async def test_a_snapshot_signed_with_another_key_is_refused() -> None:
    guest = new_guest()
    await value("(define x 1)", guest=guest)
    other = LispEngine(key=b"another key, as long as the first").guest()

    with pytest.raises(SnapshotRefused):
        await other.restore(await guest.snapshot())
