"""The semantics of the language."""

import pytest
from tests.guests.lisp.programs import run, value

from holdfast.core import Json

PROGRAMS: list[tuple[str, Json]] = [
    ("(+ 1 2)", 3),
    ("", None),
    ("(define x 4) (* x x)", 16),
    ("(define (square n) (* n n)) (square 7)", 49),
    ("(let ((x 1) (y 2)) (+ x y))", 3),
    ("(let* ((x 1) (y (+ x 1))) (list x y))", [1, 2]),
    ("(letrec ((even (lambda (n) (if (= n 0) #t (odd (- n 1))))) (odd (lambda (n) (if (= n 0) #f (even (- n 1)))))) (even 10))", True),
    ("(let loop ((i 0) (sum 0)) (if (= i 5) sum (loop (+ i 1) (+ sum i))))", 10),
    ("(cond (#f 1) ((= 1 1) 2) (else 3))", 2),
    ("(cond (#f 1) (else 3))", 3),
    ("(cond (nil 1))", None),
    ("(cond (5))", 5),
    ("(case 'b ((a) 1) ((b c) 2) (else 3))", 2),
    ("(case 9 ((1) 1) (else 3))", 3),
    ("(and 1 2 3)", 3),
    ("(and 1 #f 3)", False),
    ("(and)", True),
    ("(or #f nil 3)", 3),
    ("(or)", False),
    ("(when (> 2 1) 5 6)", 6),
    ("(unless (> 2 1) 5 6)", None),
    ("(begin 1 2 3)", 3),
    ("(if nil 1 2)", 2),
    ("(if '() 1 2)", 1),
    ("(if 0 1 2)", 1),
    ("'(a (b . c) \"d\" :e 1.5 nil #t)", ["a", ["b", "c"], "d", "e", 1.5, None, True]),
    ("`(1 ,(+ 1 1) ,@(list 3 4))", [1, 2, 3, 4]),
    ("`(1 `(2 ,(3 ,(+ 1 3))))", [1, ["quasiquote", [2, ["unquote", [3, 4]]]]]),
    ("`(1 . ,(list 2 3))", [1, 2, 3]),
    ("((lambda args args) 1 2)", [1, 2]),
    ("((lambda (a . more) (list a more)) 1 2 3)", [1, [2, 3]]),
    ("(define (f) (define a 1) (define (g) (+ a 1)) (g)) (f)", 2),
    ("(define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n))) (define c (counter)) (c) (c) (c)", 3),
    ("(define make (lambda (x) (lambda (y) (lambda (z) (list x y z))))) (((make 1) 2) 3)", [1, 2, 3]),
    ("(apply + 1 2 '(3 4))", 10),
    ("(map + '(1 2 3) '(10 20 30))", [11, 22, 33]),
    ("(filter even? (range 10))", [0, 2, 4, 6, 8]),
    ("(reduce + 0 (range 1 5))", 10),
    ("(sort '(3 1 2))", [1, 2, 3]),
    ("(sort '(\"b\" \"a\") string<?)", ["a", "b"]),
    ("(sort '((1 b) (0 a) (1 a)) (lambda (x y) (< (car x) (car y))))", [[0, "a"], [1, "b"], [1, "a"]]),
    ("(find even? '(1 3 4 5))", 4),
    ("(list (any even? '(1 2)) (every even? '(1 2)) (take '(1 2 3) 2) (drop '(1 2 3) 2) (last '(1 2)))", [True, False, [1, 2], [3], 2]),
    ("(get {:a 1 \"b\" 2} \"a\")", 1),
    ("(get {:a 1} :z 9)", 9),
    ("(put {:a 1} :b 2)", {"a": 1, "b": 2}),
    ("(let ((t {:a 1})) (put t :a 2) t)", {"a": 1}),
    ("(merge {:a 1} {:a 2 :b 3})", {"a": 2, "b": 3}),
    ("(remove {:a 1 :b 2} :a)", {"b": 2}),
    ("(entries {:a 1})", [["a", 1]]),
    ("(string-append \"a\" \"b\")", "ab"),
    ("(str \"n=\" 1 \" \" '(a \"b\"))", "n=1 (a b)"),
    ("(string-split \"a,b,c\" \",\")", ["a", "b", "c"]),
    ("(string-join '(\"a\" \"b\") \"-\")", "a-b"),
    ("(string->number \"12\")", 12),
    ("(string->number \"(\")", False),
    ("(read-string \"(1 2)\")", [1, 2]),
    ("(write-string '(\"a\\n\" b))", '("a\\n" b)'),
    ("(/ 6 3)", 2),
    ("(/ 1 4)", 0.25),
    ("(list (quotient -7 2) (remainder -7 2) (modulo -7 2))", [-3, -1, 1]),
    ("(list (= 1 1.0) (equal? 1 1.0) (equal? 1 #t) (eq? 'a 'a) (equal? '(1 (2)) '(1 (2))))", [True, True, False, True, True]),
    ("(list (expt 2 10) (expt 2.0 0.5) (sqrt 16) (abs -3) (min 3 1) (max 3 1))", [1024, 2**0.5, 4, 3, 1, 3]),
    ("(define-macro (unless2 test . body) `(if ,test nil (begin ,@body))) (unless2 #f 1 2)", 2),
    ("(define (helper form) (list 'quote form)) (define-macro (name form) (helper form)) (name (a b))", ["a", "b"]),
    ("(eval '(+ 1 2))", 3),
    ("(define (car x) 9) (define (append x) 9) (list (map (lambda (x) x) '(1 2)) `(1 ,@(list 2)))", [[1, 2], [1, 2]]),
    ("(define (f) (g)) (define (g) 1) (define one (f)) (define (g) 2) (list one (f))", [1, 2]),
    ("(define list-of list) (define (list . x) 5) (list-of (list) 1)", [5, 1]),
    ("(define x 1) (eval '(define x 2)) x", 2),
    ("(eval (list '+ 1 2))", 3),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), PROGRAMS)
async def test_a_program_has_the_expected_value(code: str, expected: object) -> None:
    assert await value(code) == expected


ERRORS = [
    ("(car 5)", "type-error"),
    ("(car '())", "type-error"),
    ("nowhere", "unbound-variable"),
    ("(set! nowhere 1)", "unbound-variable"),
    ("(define (f) (define a b) (define b 1) a) (f)", "unbound-variable"),
    ("((lambda (x) x))", "arity-error"),
    ("((lambda (x) x) 1 2)", "arity-error"),
    ("((lambda (x . y) x))", "arity-error"),
    ("(car)", "arity-error"),
    ("(cons 1)", "arity-error"),
    ("(newline 1)", "arity-error"),
    ("(5 1)", "type-error"),
    ("(\"text\" 1)", "type-error"),
    ("(+ 1 \"2\")", "type-error"),
    ("(+ 1 #t)", "type-error"),
    ("(< 1 'a)", "type-error"),
    ("(/ 1 0)", "division-by-zero"),
    ("(modulo 1 0)", "division-by-zero"),
    ("(nth '(1) 3)", "index-error"),
    ("(substring \"abc\" 2 1)", "index-error"),
    ("(error 'my-code \"went\" \"wrong\")", "my-code"),
    ("(error \"plain\")", "error"),
    ("(get 5 :a)", "type-error"),
    ("(table :a)", "arity-error"),
    ("(apply + 1)", "type-error"),
    ("(eval '(if))", "syntax-error"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), ERRORS)
async def test_an_error_has_a_stable_code(code: str, expected: str) -> None:
    ended = await run(code)

    assert ended.status == "error"
    assert isinstance(ended.value, dict)
    assert ended.value["code"] == expected


async def test_an_error_shows_its_place_and_the_callers() -> None:
    ended = await run("(define (inner x)\n  (car x))\n(define (outer x)\n  (+ 1 (inner x)))\n(outer 5)")

    assert ended.error.splitlines() == [
        "line 2, column 3: type-error: expected a non-empty list, not a number",
        "  called from outer, line 4, column 8",
    ]


async def test_an_error_in_the_library_is_reported_at_its_use() -> None:
    ended = await run("(define (f items)\n  (cons 0 (map car items)))\n(cons 1 (f '((1) 2)))")

    assert ended.error.splitlines() == [
        "line 2, column 11: type-error: expected a non-empty list, not a number",
        "  called from the top level, line 3, column 9",
    ]


async def test_the_callers_of_a_deep_recursion_are_truncated() -> None:
    ended = await run("(define (dig n) (if (= n 0) (car n) (+ 1 (dig (- n 1))))) (dig 5000)")

    assert len(ended.error.splitlines()) == 10


MALFORMED = [
    ("(", "line 1, column 1"),
    (")", "line 1, column 1"),
    ("(a]", "line 1, column 3"),
    ('\n  "abc', "line 2, column 3"),
    ("'", "line 1, column 1"),
    ("(quote a b)", "line 1, column 1"),
    ("(+ 1\n   (if))", "line 2, column 4"),
    ("(lambda (x x) x)", "line 1, column 1"),
    ("(lambda (1) x)", "line 1, column 1"),
    ("(let ((if 1)) 2)", "line 1, column 1"),
    ("(define if 1)", "line 1, column 1"),
    ("(+ 1 (define x 2))", "line 1, column 6"),
    ("(f . x)", "line 1, column 1"),
    ("()", ""),
    ("else", ""),
    (",x", "line 1, column 1"),
    ("#unknown", "line 1, column 1"),
    ('"\\q"', "line 1, column 1"),
    ('"\\u{d800}"', "line 1, column 1"),
    ("9" * 2000, "line 1, column 1"),
    ("1e999", "line 1, column 1"),
    ("(a . )", "line 1, column 6"),
    ("(a . b c)", "line 1, column 9"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "place"), MALFORMED)
async def test_a_malformed_program_is_refused_before_anything_runs(code: str, place: str) -> None:
    ended = await run(f"(print 1) {code}" if not place else code)

    assert ended.status == "refused"
    assert ended.printed == ""
    assert "syntax-error" in ended.error
    assert place in ended.error
