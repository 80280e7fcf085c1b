"""The flow of Lisp programs: what it finds, and that it misses nothing that a random program really moves."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.agent.lisp_flow import lisp_flow
from holdfast.agent.program_origins import lisp_signatures
from holdfast.core import UNKNOWN, Answer, ArgumentRoles, Failed, JsonObject, Origin, Origins, Returned, Tool
from holdfast.guests import CALL_PLACE, Engine, Guest, GuestLimits, RunRequest
from holdfast.guests.lisp import lisp_engine

PROGRAMS_IN_SHORT_FORM = 60


def _tool(name: str, *parameters: str) -> Tool:
    schema: JsonObject = {"type": "object", "properties": {each: {} for each in parameters}}
    return Tool(
        name=name,
        parameters=schema,
        roles={each: ArgumentRoles(default=("none",)) for each in parameters},
    )


TOOLS = (_tool("mail.search", "query"), _tool("web.get", "url"), _tool("bank.pay", "to", "note"))
SIGNATURES = lisp_signatures(TOOLS)


def paid_with(code: str, argument: str = "to", *, earlier: str = "") -> set[str]:
    """What an argument of the only payment is made of, in short words."""
    before = lisp_flow(earlier, tools=SIGNATURES, variables={})
    variables = {"*": frozenset({UNKNOWN})} if before.unknown else before.variables
    flow = lisp_flow(code, tools=SIGNATURES, variables=variables)
    sites = [site for site in flow.sites.values() if "bank.pay" in site.operations]
    if flow.unknown or not sites:
        return {"unknown"}
    [site] = sites
    return {_shown(origin) for origin in site.origins_of(argument) if not origin.is_chosen}


def _shown(origin: Origin) -> str:
    return ".".join((origin.operation, *origin.path)) if origin.kind == "read" else origin.kind


@pytest.mark.parametrize(
    ("code", "origins"),
    [
        ('(bank/pay :to "DE1")', {"written"}),
        ('(bank/pay "DE1" "thanks")', {"written"}),
        ("(bank/pay :to (get (car (mail/search)) :sender))", {"mail.search.sender"}),
        ('(let ((m (mail/search :query "x"))) (bank/pay :to (get (first m) :id)))', {"mail.search.id"}),
        ("(define (of m) (get m :id)) (bank/pay :to (of (car (mail/search))))", {"mail.search.id"}),
        ("(for-each (lambda (m) (bank/pay :to (get m :id))) (mail/search))", {"mail.search.id"}),
        ('(bank/pay :to (if (mail/search) "a" (web/get "b")))', {"written", "web.get"}),
        ("(bank/pay :to (get {:id (car (mail/search))} :id))", {"mail.search", "written"}),
        ('(bank/pay :to (string-append "x" (get (car (mail/search)) :body)))', {"written", "mail.search.body"}),
        ('(bank/pay :to (outcome-field (try (error "x" (web/get "a"))) :message))', {"written", "web.get", "bank.pay"}),
        ('(bank/pay :note (web/get "a") :to "DE1")', {"written"}),
        ('(define k :note) (bank/pay k "DE1" :to "x")', {"written"}),
        ("(define k :to) (bank/pay k (mail/search))", {"written", "mail.search"}),
        ("(bank/pay :to (call \"web.get\" :url \"a\"))", {"unknown", "written"}),
        ("(map bank/pay (mail/search))", {"unknown"}),
        ("(eval '(bank/pay :to \"x\"))", {"unknown"}),
        ("(define-macro (m x) x) (bank/pay :to (m 1))", {"unknown"}),
        ("(define (f x) (f x)) (bank/pay :to (f (mail/search)))", {"unknown"}),
        ("(define pay bank/pay) (pay :to (get (car (mail/search)) :id))", {"mail.search.id"}),
        ('(define (f x) x) (f (mail/search)) (let ((x "DE1")) (bank/pay :to x))', {"written"}),
        ('(let ((x (mail/search))) (print x)) (let ((x "DE1")) (bank/pay :to x))', {"written"}),
        ('(define x "DE1") (define (f x) (set! x (mail/search)) x) (f 1) (bank/pay :to x)', {"written"}),
        ('(define x "DE1") (define (f) (set! x (web/get "a"))) (f) (bank/pay :to x)', {"written", "web.get"}),
        ('(define (f bank/pay) (bank/pay :to "a")) (f print) (bank/pay :to (web/get "a"))', {"web.get"}),
        ('(let ((y (web/get "a"))) (define (g) y) (bank/pay :to (g)))', {"web.get"}),
        ("(set! car cdr) (bank/pay :to (car (mail/search)))", {"mail.search"}),
    ],
)  # fmt: skip
def test_an_argument_is_made_of(code: str, origins: set[str]) -> None:
    assert paid_with(code) == origins


def test_variables_of_earlier_programs_keep_what_they_are_made_of() -> None:
    earlier = "(define m (get (car (mail/search)) :body)) (define (f) m)"
    assert paid_with("(bank/pay :to m)", earlier=earlier) == {"mail.search.body", "written"}
    assert paid_with("(bank/pay :to (f))", earlier=earlier) == {"unknown"}
    nested = '(begin (begin (define y (web/get "a"))))'
    assert paid_with("(bank/pay :to y)", earlier=nested) == {"web.get", "written"}
    assert paid_with('(bank/pay :to "x")', earlier="(define-macro (list . x) x)") == {"unknown"}


@pytest.mark.parametrize("code", ["(" * 5000, "(bank/pay", "(bank/pay :to" + " (f" * 3000 + ")" * 3001])
def test_a_program_that_cannot_be_read_is_unknown(code: str) -> None:
    assert lisp_flow(code, tools=SIGNATURES, variables={}).unknown


class _Writer:
    """Writes random programs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = ["a", "b", "c"]

    def program(self) -> str:
        forms = ['(define a "w")', "(define b (mail/search))", "(define c (list))"]
        return "\n".join(forms + [self._form() for _ in range(self._random.randint(2, 6))])

    def _form(self) -> str:
        name, value = self._random.choice(self._names), self._value(3)
        return self._random.choice(
            [
                f"(set! {name} {value})",
                f"(try (bank/pay :to {value} :note {self._value(2)}))",
                f"(try (bank/pay {value} {self._value(2)}))",
                f"(try (for-each (lambda (x) (bank/pay :to x :note {value})) (list {self._value(2)} {name})))",
                f"(define (f x) (try (bank/pay :to x)) {value})",
                f"(print {value})",
                f"(try (if {value} (bank/pay :to {name}) (set! {name} {self._value(1)})))",
            ]
        )

    def _value(self, depth: int) -> str:
        choose = self._random.choice
        if depth == 0:
            return choose([*self._names, '"w"', "1", '(web/get "u")', "(mail/search)"])
        one, other = self._value(depth - 1), self._value(depth - 1)
        key = choose([":id", ":body", ":sender", '"id"'])
        return choose(
            [
                f"(let ((y {one})) (list y {other}))", f"(let* ((a {one}) (b a)) b)", f"(if {one} {one} {other})",
                f"(try {one})", f"(outcome-value (try (get (car {one}) {key})))", f"(outcome-value (try (car {one})))",
                f"(outcome-value (try (get {one} {key} {other})))", f"{{:id {one} :body {other}}}",
                f"(outcome-value (try (map (lambda (z) (get z {key})) {one})))", f"(str {one} {other})",
                f"(outcome-value (try (reduce (lambda (p q) (cons q p)) {other} {one})))", f"`(x ,{one} ,@(list {other}))",
                f"(outcome-field (try (error 'e (str {one}))) :message)", f"((lambda (x . more) (list more x)) {one} {other})",
                f"(or {one} {other})", f"(outcome-value (try (filter (lambda (z) #t) {one})))", f"(cons {one} (list {other}))",
                f"(let loop ((i 0) (v {one})) (if (= i 2) v (loop (+ i 1) (list v {other}))))",
                f"(outcome-value (try (values (put {{:k {one}}} {key} {other}))))", f"(outcome-value (try (apply list {one} (list {other}))))",
            ]
        )  # fmt: skip


class _Host:
    """Answers with marks, and notes which marks reach which argument from where."""

    def __init__(self) -> None:
        self.marks: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.paid: list[tuple[tuple[int, int] | None, str, str]] = []

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        match operation:
            case "mail.search":
                return Returned(value=[{key: self._mark(operation, key) for key in ("id", "body", "sender")}])
            case "web.get":
                return Returned(value=self._mark(operation))
            case "bank.pay":
                place = CALL_PLACE.get()
                self.paid += [(place, name, str(value)) for name, value in arguments.items()]
                return Returned(value=None)
        return Failed(error="x", reason="x")

    def _mark(self, operation: str, *path: str) -> str:
        mark = f"<{len(self.marks)}>"
        self.marks[mark] = operation, path
        return mark

    def in_text(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        return (source for mark, source in self.marks.items() if mark in text)


def _covers(origins: Origins, operation: str, path: tuple[str, ...]) -> bool:
    return any(
        origin.kind in ("unknown", "session")
        or (
            origin.kind == "read"
            and not origin.is_chosen
            and origin.operation == operation
            and len(origin.path) <= len(path)
            and all(one in ("*", other) for one, other in zip(origin.path, path, strict=False))
        )
        for origin in origins
    )


async def check_program(seed: int, guest: Guest) -> tuple[int, int]:
    """Run a random program. Returns how many arguments had marks, and how many of them the analysis followed."""
    code, host = _Writer(seed).program(), _Host()
    flow = lisp_flow(code, tools=SIGNATURES, variables={})
    await guest.restore(b"")
    run = await guest.run(RunRequest(code=code, tools=TOOLS, limits=GuestLimits(), seed=1, now_ms=0), host)
    marked = followed = 0
    for place, argument, text in host.paid:
        found = list(host.in_text(text))
        origins = flow.origins_of(place, "bank.pay", argument)
        for operation, path in found:
            assert _covers(origins, operation, path), (
                f"seed {seed}: {operation}{path} in {argument} at {place} of\n{code}"
            )
        marked += bool(found)
        followed += bool(found) and Origin(kind="unknown") not in origins
    if not flow.unknown and run.status == "ok":
        for operation, path in host.in_text(run.printed + str(run.value)):
            assert _covers(flow.shown, operation, path), f"seed {seed}: shown by\n{code}"
    return marked, followed


@pytest.fixture
async def engine() -> Any:
    engine: Engine = lisp_engine(key=b"k" * 32)
    yield engine
    await engine.close()


async def test_nothing_that_a_random_program_moves_into_an_argument_is_missed(engine: Engine) -> None:
    guest = engine.guest()
    counts = [await check_program(seed, guest) for seed in range(PROGRAMS_IN_SHORT_FORM)]
    assert sum(marked for marked, _ in counts) > 50
    assert sum(followed for _, followed in counts) > 0.8 * sum(marked for marked, _ in counts)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first_seed", range(10_000, 30_000, 1_000))
async def test_nothing_is_missed_in_twenty_thousand_random_programs(first_seed: int, engine: Engine) -> None:
    guest = engine.guest()
    for seed in range(first_seed, first_seed + 1_000):
        await check_program(seed, guest)
