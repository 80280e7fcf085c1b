"""Code under a limit of steps counts them, cannot stop counting, and is otherwise the same code."""

import ast
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.guests.engines import ECHO, KEY, PYTHON
from tests.guests.test_guest_contract import Echo

import holdfast.world
from holdfast.core import EscalationId, Parked, Returned
from holdfast.guests import Engine, Guest, GuestLimits, Run, RunRequest, python_engine
from holdfast.guests.python.steps import as_written, counted

FEW = GuestLimits(steps=500, seconds=20)
MANY = GuestLimits(steps=1_000_000)
VARIABLES = "seen = locals()\n[[name, str(seen[name])] for name in seen if not name.startswith('__ste') and name != 'seen']"

SAME = [
    "",
    "# only a comment",
    "x = 1; y = 2\nx + y",
    "def f(n):\n    '''A docstring.'''\n    if n < 2: return n\n    return f(n - 1) + f(n - 2)\nvalue = f(8)\nvalue",
    "def f(n):\n    return f(n + 1)\nf(0)",
    "total = 0\nfor i in range(5):\n    if i == 2: continue\n    elif i == 4:\n        break\n    else: total += i\nelse: total = -1\ntotal",
    "n = 3\nwhile n:\n\tn -= 1\nelse:\n\tn = 'done'\nn",
    "while (n := 0): pass\nif m := [1]: k = m\nwhile x := None: pass\nk",
    "for a, *b in [(1, 2, 3)]: pass\nfor c in 1, 2: pass\nfor d in *[1], *[2]: pass\n[a, b, c, d]",
    "f = lambda n: 1 if n < 1 else n * f(n - 1)\ng = lambda a, b=lambda: 7: lambda: b() if a else None\n[f(5), g(1)()]",
    "[[x * y for x in range(3) if x for y in 'ab' if y != 'a'], {k: v for k, v in [(1, 2)]}]",
    "sum(i for i in (1, 2, 3) if (lambda q: q > 1)(i))",
    "rows = [\n    x  # for x in y:\n    for x in range(3)\n    if x\n]\nrows",
    "words = ['a', 'b']\nprint(f\"{', '.join(w for w in words):>{6}} {words[0]!r} {{for}}\")\nprint(f'{len(words)=}')",
    "d = {'for': 1}\nprint(f\"{d[\"for\"]} {f'{[x for x in range(2)]}'}\", rf'\\{d[\"for\"]}', '\\'for', b'if')",
    "'''\nfor x in y:\n''' + \"\"\"\n    lambda: 0\"\"\" + 'a\\\nb'",
    "class Point:\n    kind: str = 'p'\n    def __init__(self, x): self.x = x\n    def twice(self):\n        return [self.x for _ in range(2)]\nPoint(3).twice()",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\nprint(P(1))",
    "def deco(f):\n    def inner(*a):\n        return f(*a) + 1\n    return inner\n@deco\ndef one(): return 1\none()",
    "match (1, {'k': 2}):\n    case (1, {'k': v}) if v: got = v\n    case _:\n        got = None\nmatch = got\nmatch",
    "case: int = 3\nmatch: int = 4\ntype = 5\n[case, match, type]",
    "try:\n    1 / 0\nexcept ZeroDivisionError as error: told = str(error)\nfinally: print('end')\ntold",
    "n = 0\ndef bump():\n    global n\n    n += 1\n    def inner():\n        nonlocal_free = n\n        return nonlocal_free\n    return inner()\nbump()",
    "import asyncio\nasync def f(n):\n    return [n for _ in range(2)]\nawait f(3)",
    "x = 1 if 2 else 3\ny = x \\\n    + 1\nassert y == 2, 'no'\ny",
    "def f(x): return 1 / x\ndef g():\n    for i in range(3): f(1 - i)\ng()",
    "[1 / (2 - i) for i in range(4)]",
    "f = lambda: {}['missing']\nf()",
    "x = [1,\n  (3 +\n 'a')]",
    "if {}.get(1) or [][0]: pass",
    "while None['x']: pass",
    "for i in 3: pass",
    "def f():\n    yield 1",
    "raise ValueError('x' * 20000)",
    "undefined_name",
    "print('é', 'ｆ'); ﬁ = 3\nfi / 0",
    *asdict(PYTHON).values(),
]
ATTACKS = {
    "a loop": "while True: pass",
    "a loop over what never ends": "import itertools\nfor i in itertools.count():\n    if i < 0: pass",
    "a loop of matches": "import itertools\nfor i in itertools.count():\n    match i:\n        case -1: pass",
    "catching": "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n    finally: pass",
    "a comprehension that keeps nothing": "[0 for i in range(10**9) if False]",
    "comprehensions in each other": "{i for i in range(10**5) for j in range(10**5) if False}",
    "a generator": "sum(0 for i in range(10**9))",
    "a field of a string": "f'{[0 for i in range(10**9)]}'",
    "lambdas": "f = lambda n: 1 if not n else f(n - 1) + f(n - 1)\nf(60)",
    "lambdas in conditions": "f = lambda n: 0 if n and (f(n - 1), f(n - 1)) and 0 else 1\nf(60)",
    "functions": "def f(n):\n    for x in () if not n else (f(n - 1), f(n - 1)): pass\nf(60)",
    "methods": "class A:\n    def f(self, n): return n and (self.f(n - 1), self.f(n - 1))\nA().f(60)",
    "a key that is caught": "while True:\n    try: max(range(10**5), key=lambda n: n)\n    except BaseException: pass",
    "a key": "max(range(10**5), key=lambda n: n)",
    "names of the count's own tools": "next = iter = range = lambda *a: 1\nwhile True: pass",
    "parameters of those names": "def f(next, iter, range):\n    while True: pass\nf(1, 2, 3)",
    "an object of the count": "left = [v for k, v in locals().items() if k.endswith('left__')][0]\nwhile True: pass",
    "a loop on a line of its own": "if True:\n    while 1: 0",
    "a lone carriage return": "x = 1\rwhile True: pass",
}
REFUSED = {
    "the reserved name": "__step_left__ = iter([1])",
    "the reserved name in other letters": "_＿step_left__ = 1",
    "the reserved name in a parameter": "def f(__step_next__): return 1",
    "eval": "eval('[0 for i in range(10**9)]')",
    "exec by another name": "run = ｅｘｅｃ\nrun('while True: pass')",
    "a variable named as a statement": "for i in range(10**9):\n    match = i",
    "a loop of definitions": "for i in range(10**9):\n    def f(): pass",
    "a function of definitions": "def f(n):\n    def g(a=n and f(n - 1), b=n and f(n - 1)): pass\nf(60)",
    "a field that shows its text": "print(f'{[x for x in range(3)]=}')",
    "more than can be looked through": "x = 1  # " + "-" * 50_000,
}


def _stem(module: Path) -> str:
    return module.stem


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    made = python_engine(key=KEY)
    yield made
    await made.close()


async def run(guest: Guest, code: str, limits: GuestLimits, echo: Echo | None = None) -> Run:
    return await guest.run(RunRequest(code=code, tools=(ECHO,), limits=limits), echo or Echo())


@pytest.mark.parametrize("code", [code for code in SAME if code != PYTHON.spins])
async def test_counting_changes_nothing_but_the_count(engine: Engine, code: str) -> None:
    plain, counting = engine.guest(), engine.guest()
    for each in (code, VARIABLES, code):
        expected, found = await run(plain, each, GuestLimits()), await run(counting, each, MANY)
        assert (found.status, found.value, found.printed) == (
            expected.status,
            expected.value,
            expected.printed,
        )
        assert found.error == expected.error
        assert found.is_unsupported == expected.is_unsupported


@pytest.mark.parametrize("attack", ATTACKS)
async def test_whatever_code_does_it_ends_at_its_limit(engine: Engine, attack: str) -> None:
    guest = engine.guest()
    await run(guest, "kept = 1", FEW)
    ended = await run(guest, f"kept = 2\n{ATTACKS[attack]}", FEW)
    assert (ended.status, ended.steps) == ("limit", 500)
    assert ended.error.startswith("The code made more than 500 steps.")
    assert (await run(guest, "kept", FEW)).value == 1


@pytest.mark.parametrize("way", REFUSED)
async def test_what_could_not_be_counted_is_refused(engine: Engine, way: str) -> None:
    ended = await run(engine.guest(), REFUSED[way], FEW)
    assert (ended.status, ended.is_unsupported) == ("refused", True)
    assert "Under a limit of steps this code cannot run here" in ended.error
    assert "seconds" in ended.error


async def test_tools_that_were_replaced_in_an_earlier_run_do_not_count_for_the_next(engine: Engine) -> None:
    guest = engine.guest()
    await run(guest, "next = iter = lambda *a: [1] * 10**6\nrange = lambda *a: [1] * 10**6", FEW)
    assert (await run(guest, "while True: pass", FEW)).steps == 500


async def test_the_count_begins_anew_with_each_run_and_goes_on_after_a_wait(engine: Engine) -> None:
    guest = engine.guest()
    code = "for i in range(200): pass\nx = echo.say(text='a')\nfor i in range({}): pass"
    for turns, status in ((200, "ok"), (400, "limit")):
        waits = Echo(Parked(escalation=EscalationId("e-1")))
        parked = await run(guest, code.format(turns), FEW, waits)
        assert parked.snapshot is not None
        request = RunRequest(code=code.format(turns), tools=(ECHO,), limits=FEW)
        other = engine.guest()
        ended = await other.resume(parked.snapshot, Returned(value="yes"), request, Echo())
        assert ended.status == status
        assert ended.steps == (403 if status == "ok" else 500)


async def test_functions_that_count_do_not_stop_a_later_run_without_a_limit(engine: Engine) -> None:
    guest = engine.guest()
    await run(guest, "def f():\n    for i in range(2000): pass\n    return 'done'", FEW)
    assert (await run(guest, "f()", FEW)).status == "limit"
    assert (await run(guest, "f()", GuestLimits())).value == "done"


async def test_a_session_that_began_without_counting_cannot_begin_later(engine: Engine) -> None:
    guest = engine.guest()
    await run(guest, "def f():\n    while True: pass", GuestLimits())
    ended = await run(guest, "f()", FEW)
    assert (ended.status, ended.is_unsupported) == ("refused", True)
    assert "earlier code" in ended.error


async def test_no_steps_at_all_is_a_limit_too(engine: Engine) -> None:
    ended = await run(engine.guest(), "1", GuestLimits(steps=0))
    assert (ended.status, ended.steps) == ("limit", 0)


@pytest.mark.parametrize("module", sorted(Path(holdfast.world.__file__).parent.glob("*.py")), ids=_stem)
def test_every_line_of_real_code_keeps_its_number_and_its_meaning(module: Path) -> None:
    code = module.read_text()
    counting = counted(code)
    assert as_written(counting) == code
    assert ast.dump(_Without().visit(ast.parse(counting))) == ast.dump(ast.parse(code))


class _Without(ast.NodeTransformer):
    """Takes out what was written into code."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_step(node.value) else self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        is_written = isinstance(node.test, ast.UnaryOp) and _is_step(node.test.operand)
        return node.orelse if is_written else node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [each for each in node.ifs if not _is_step(each)]
        return node


def _is_step(node: ast.expr) -> bool:
    return isinstance(node, ast.BoolOp) and "__step_next__" in ast.dump(node.values[0])
