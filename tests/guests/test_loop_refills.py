"""Calls inserted into loops keep the code as it is: it parses, keeps its lines, and the calls can be taken out again."""

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.guests.python.loop_refills import CALL, insert_refills, without_refills

SOURCES = sorted(Path(holdfast.__file__).parent.rglob("*.py"))
LIBRARY = sorted(Path(ast.__file__).parent.glob("*.py"))
PIECES = st.lists(
    st.sampled_from(
        ["for x in f:\n", "    ", "if a:\n", "x = 1\n", "'''", '"""', "'", '"', "\\", "#", "\n", "(", ")", "[", "]", "{", "}",
         ":=", ":", " for y in g", " if b", "lambda: 0", "try:\n", "with a as b:\n", "f'{x}'", "é", "in", "match x:\n", ";"]
    ),
    max_size=30,
).map("".join)  # fmt: skip
MEANINGS = {
    "for x in f:\n    pass": 2,
    "for x in open('a'): pass": 2,
    "for x in f:\n    if a:\n        pass": 2,
    "for x in f:\n    if y := g(x):\n        pass": 2,
    "for x in f:\n    for y in x.split():\n        pass": 2,
    "for x in f:\n    try:\n        pass\n    finally:\n        pass": 2,
    "for x in f:\n    with a as b, c:\n        pass": 2,
    "for x in self.files[0]:\n    match = 1": 2,
    "[x for x in f]": 2,
    "[x for x in f if x]": 2,
    "{k: v for k, v in f}": 2,
    "sum(1 for x in f)": 2,
    "for x in range(9):\n    pass": 0,
    "for x in f:\n    def g(): pass": 0,
    "[x for x in sorted(f)]": 0,
    "'for x in f: pass'": 0,
    "'''\nfor x in f:\n    pass\n'''": 0,
    "# for x in f: pass": 0,
}


@pytest.mark.parametrize(("code", "count"), MEANINGS.items())
def test_loops_that_may_be_over_a_file_get_a_call_and_others_do_not(code: str, count: int) -> None:
    changed = insert_refills(code)
    ast.parse(changed)
    assert changed.count(CALL) == count
    assert without_refills(changed) == code


def test_code_of_this_project_keeps_its_meaning() -> None:
    changed = 0
    for path in SOURCES[::4]:
        changed += check(path.read_text())
    assert changed > 100


@pytest.mark.soak
def test_all_code_of_this_project_keeps_its_meaning() -> None:
    assert sum(check(path.read_text()) for path in SOURCES) > 500


@pytest.mark.soak
def test_code_of_the_standard_library_keeps_its_meaning() -> None:
    assert sum(check(path.read_text(errors="replace")) for path in LIBRARY) > 500


@settings(deadline=None, max_examples=300)
@given(PIECES)
def test_any_text_can_be_changed_and_changed_back(code: str) -> None:
    assert without_refills(insert_refills(code)) == code


@pytest.mark.parametrize(
    "piece", ['"""', "'''\\", "for x in f:\n", "[x for x in f", "(", "f'{", "for x in ", "try:\n"]
)
def test_the_scan_of_hostile_code_takes_linear_time(piece: str) -> None:
    sizes = [insert_refills_steps("for x in f:\n" + piece * count) for count in (500, 1_000)]
    assert sizes[1] < 3 * sizes[0]


def insert_refills_steps(code: str) -> int:
    """How many lines of Python a scan takes."""
    steps = 0

    def count(_frame: object, _event: str, _argument: object) -> object:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        insert_refills(code)
    finally:
        sys.settrace(before)
    return steps


def check(code: str) -> int:
    """Check that code with calls parses, and return how many there are."""
    changed = insert_refills(code)
    ast.parse(changed)
    assert changed.count("\n") == code.count("\n")
    assert without_refills(changed) == code
    return changed.count(CALL)
