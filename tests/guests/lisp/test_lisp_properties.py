"""Properties of every program: reading reverses writing, the machine agrees with a reference evaluator, any step can be saved."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.guests.lisp.reference_evaluator import Scope, evaluate

from holdfast.core import Json, Returned
from holdfast.guests.contract import GuestLimits
from holdfast.guests.lisp.data import EMPTY, Datum, Keyword, Pair, Symbol, make_list
from holdfast.guests.lisp.errors import LimitReached, LispError, LispSyntaxError
from holdfast.guests.lisp.host_calls import LANGUAGE
from holdfast.guests.lisp.json_bridge import to_json
from holdfast.guests.lisp.lang.equality import Allowance, are_equal, canonical
from holdfast.guests.lisp.lang.expander import RESERVED
from holdfast.guests.lisp.lang.printer import show
from holdfast.guests.lisp.lang.reader import read
from holdfast.guests.lisp.lib import library, new_state
from holdfast.guests.lisp.vm.limits import Meter
from holdfast.guests.lisp.vm.machine import Machine
from holdfast.guests.lisp.vm.memory_use import measure
from holdfast.guests.lisp.vm.snapshot import load_machine, save_machine

NAMES = st.text(string.ascii_letters + "+-*/<>=!?é", min_size=1, max_size=8).filter(
    lambda name: name not in ("nil", "+", "-") and name[0] not in "+-."
)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    NAMES.map(Symbol),
    NAMES.map(Keyword),
    st.just(EMPTY),
)
DATA: st.SearchStrategy[Datum] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(make_list),
        st.tuples(inner, inner).map(lambda both: Pair(both[0], both[1])),
        inner.map(lambda datum: make_list([Symbol("quote"), datum])),
        inner.map(lambda datum: make_list([Symbol("unquote"), datum])),
    ),
    max_leaves=20,
)


each_run = pytest.mark.parametrize(
    "run", [0, *(pytest.param(number, marks=pytest.mark.soak) for number in range(1, 4))]
)
"""The long form runs a property three more times, each time with other examples."""


@each_run
@settings(deadline=None, max_examples=60)
@given(DATA)
def test_written_data_reads_back_as_equal(run: int, datum: Datum) -> None:
    (back,) = read(show(datum, max_characters=10**6))

    assert are_equal(datum, back)[0]
    assert canonical(datum, Allowance()) == canonical(back, Allowance())


@given(st.text(max_size=60))
def test_reading_any_text_gives_data_or_an_error_with_a_place(text: str) -> None:
    try:
        read(text)
        line = 1
    except LispSyntaxError as error:
        line = error.place.line if error.place else 0
    assert 1 <= line <= text.count("\n") + 1


@st.composite
def expressions(draw: st.DrawFn, names: tuple[str, ...] = (), depth: int = 3) -> str:
    """The text of an expression whose value is an integer or a list of integers."""
    if depth == 0 or draw(st.booleans()):
        choices = [st.integers(-9, 9).map(str)]
        if names:
            choices.append(st.sampled_from(names))
        return str(draw(st.one_of(*choices)))
    part = expressions(names, depth - 1)
    fresh = f"v{len(names)}"
    inner = expressions((*names, fresh), depth - 1)
    shape = draw(st.integers(0, 8))
    match shape:
        case 0:
            return f"({draw(st.sampled_from('+-*'))} {draw(part)} {draw(part)})"
        case 1:
            return f"(if (< {draw(part)} {draw(part)}) {draw(part)} {draw(part)})"
        case 2:
            return f"(let (({fresh} {draw(part)})) {draw(inner)})"
        case 3:
            return f"((lambda ({fresh}) {draw(inner)}) {draw(part)})"
        case 4:
            return f"(begin {draw(part)} {draw(part)})"
        case 5 if names:
            name = draw(st.sampled_from(names))
            return f"(begin (set! {name} {draw(part)}) {draw(part)})"
        case 6:
            return f"(or (and (= {draw(part)} 0) {draw(part)}) {draw(part)})"
        case 7:
            return f"(let (({fresh} (lambda (x) (+ x {draw(part)})))) (+ ({fresh} {draw(part)}) ({fresh} 1)))"
        case _:
            return f"(let (({fresh} {draw(part)})) (let ((f (lambda () (set! {fresh} (+ {fresh} 1)) {fresh}))) (begin (f) (f))))"


def new_machine(limits: GuestLimits | None = None) -> Machine:
    return Machine(new_state(100), Meter(limits or GuestLimits()), operations={}, seed=7, now_ms=5)


def finish(machine: Machine, *, steps: int = 100_000) -> Json:
    """Run to the end, and answer every call with its own operation and arguments."""
    while (progress := machine.advance(steps)) != "done":
        if progress == "waiting":
            answer(machine)
        elif progress == "memory-check":
            measure(machine)
    return to_json(machine.value, names_procedures=True)


def answer(machine: Machine) -> None:
    assert machine.pending_call is not None
    operation, arguments = machine.pending_call.operation, machine.pending_call.arguments
    machine.resume_with(
        Returned() if operation in LANGUAGE else Returned(value=f"{operation} {sorted(arguments.items())}")
    )


@each_run
@settings(deadline=None, max_examples=60)
@given(expressions())
def test_the_machine_agrees_with_the_reference_evaluator(run: int, code: str) -> None:
    machine = new_machine()
    machine.load(read(code))

    (form,) = read(code)
    assert finish(machine) == evaluate(form, Scope(None))


PUBLIC = sorted(name for name in library().cells if not name.startswith("%"))
ARGUMENTS = st.one_of(
    DATA,
    st.dictionaries(st.text(string.ascii_letters, max_size=3), ATOMS, max_size=3),
    st.sampled_from(PUBLIC).map(lambda name: library().cells[name].value),
    st.sampled_from([10**1000, -(10**1000), 1e308, 2**63, 1 << 4000]),
)


@each_run
@settings(deadline=None, max_examples=100)
@given(st.sampled_from(PUBLIC), st.lists(ARGUMENTS, max_size=4))
def test_any_procedure_with_any_arguments_ends_in_a_value_or_an_error(
    run: int, name: str, arguments: list[Datum]
) -> None:
    machine = new_machine(GuestLimits(steps=20_000, memory_bytes=50_000_000))
    quoted = [make_list([Symbol("quote"), argument]) for argument in arguments]
    machine.load([make_list([Symbol(name), *quoted])])

    try:
        finish(machine)
    except LispError as error:
        assert error.code, str(error)  # noqa: PT017
    except LimitReached as limit:
        assert limit.limit in ("steps", "memory_bytes", "output_bytes")  # noqa: PT017


FORMS: st.SearchStrategy[Datum] = st.recursive(
    st.one_of(ATOMS, st.sampled_from(sorted(RESERVED | {"x", "y", "list", "car"})).map(Symbol)),
    lambda inner: st.tuples(
        st.one_of(st.sampled_from(sorted(RESERVED | {"list", "x"})).map(Symbol), inner),
        st.lists(inner, max_size=4),
    ).map(lambda form: Pair(form[0], make_list(form[1]))),
    max_leaves=25,
)


@each_run
@settings(deadline=None, max_examples=60)
@given(st.lists(FORMS, max_size=3))
def test_any_form_is_refused_or_ends_in_a_value_or_an_error(run: int, forms: list[Datum]) -> None:
    machine = new_machine(GuestLimits(steps=20_000))
    status = "ended"
    try:
        machine.load([*read("(define x 1) (define (y . z) z)"), *forms])
        finish(machine)
    except LispSyntaxError as error:
        status = error.code
    except (LispError, LimitReached) as error:
        status = type(error).__name__
    assert status in ("ended", "syntax-error", "LispError", "LimitReached")


SAVED = """
(define (count n) (if (= n 0) 0 (+ 1 (count (- n 1)))))
(define-macro (twice form) `(begin ,form ,form))
(define log '())
(define (note x) (set! log (cons x log)))
(twice (note (count 3)))
(define c (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
(c)
(assert '(a fact) "seen")
(define read-it (memo/auto (world/read "a.txt")))
(define again (memo/auto (world/read "a.txt")))
(define limited (with-budget {:steps 40} (let loop ((i 0)) (loop (+ i 1)))))
(define caught (try (car (world/read "b.txt"))))
(define x 1)
(define fixed (fixpoint/outcome (set! x (min 3 (+ x 1))) x :watch '(bindings)))
(define apart (subeval '(begin (assert 'inner) (list (facts) y)) {:y 4}))
(print "drawn" (random 100) (random 100))
(map (lambda (v) (list v (c))) (list log (facts) read-it again limited caught fixed apart (sort '(3 1 2))
     (memo/stats) (call "tool.use" :items '(1 "two" three))))
"""


def test_a_run_saved_at_any_step_continues_unchanged() -> None:
    uninterrupted = new_machine()
    uninterrupted.load(read(SAVED))
    expected = finish(uninterrupted)
    machine = new_machine()
    machine.load(read(SAVED))
    for saved_after in range(1, uninterrupted.meter.steps, 97):
        while machine.meter.steps < saved_after:
            if machine.advance(1) == "waiting":
                answer(machine)
        other = new_machine()
        load_machine(other, save_machine(machine), library())
        assert finish(other) == expected, saved_after
        assert other.meter.output == uninterrupted.meter.output
        assert other.meter.steps == uninterrupted.meter.steps


@pytest.mark.parametrize("steps", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_a_run_that_is_saved_repeatedly_continues_unchanged(steps: int) -> None:
    uninterrupted = new_machine()
    uninterrupted.load(read(SAVED))
    expected = finish(uninterrupted)
    machine = new_machine()
    machine.load(read(SAVED))
    while (progress := machine.advance(steps)) != "done":
        if progress == "waiting":
            answer(machine)
        else:
            saved, machine = save_machine(machine), new_machine()
            load_machine(machine, saved, library())
    assert to_json(machine.value) == expected
    assert machine.meter.output == uninterrupted.meter.output
