"""Calls inserted into code keep it as it is: it parses, keeps its lines, and the calls can be taken out again."""

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.guests.python.file_insertions import PATH, SHOW, as_written, insert_file_calls
from holdfast.guests.python.loop_refills import REFILL

SOURCES = [
    path for path in sorted(Path(holdfast.__file__).parent.rglob("*.py")) if PATH not in path.read_text()
]
LIBRARY = sorted(Path(ast.__file__).parent.glob("*.py"))
PIECES = st.lists(
    st.sampled_from(
        ["for x in f:\n", "    ", "if a:\n", "x = 1\n", "'''", '"""', "'", '"', "\\", "#", "\n", "(", ")", "[", "]", "{", "}",
         ":=", ":", " for y in g", " if b", "p.open()", ".open(", "world.read(x)", "os", "elif", "lambda: 0", "try:\n", "with a as b:\n", "f'{x}'", "é", "in", "match x:\n", ";"]
    ),
    max_size=30,
).map("".join)  # fmt: skip
TOOLS = frozenset({"world"})
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
    changed = insert_file_calls(code, TOOLS).text
    ast.parse(changed)
    assert changed.count(REFILL) == count
    assert as_written(changed) == code


LOOKS = {
    "x = world.read('a')": 1,
    "f.write('a'); x = world.read('a'); y = 1": 1,
    "if world.exists('a'):\n    pass\nelif Path('b').exists(): pass": 2,
    "if (found := p.exists()):\n    pass": 1,
    "while p.exists():\n    f.write('x')": 1,
    "for each in Path('.').iterdir():\n    pass": 1,
    "with (world.read('a') as b): pass": 0,
    "def look():\n    return os.listdir('.')": 1,
    "try:\n    p.unlink()\nexcept OSError: os.remove('b')": 1,
    "match = p.exists()\nmatch p.exists():\n    case True: p.unlink()": 1,
    "@world.tool\ndef f(): pass": 0,
    "import os\nfrom pathlib import Path": 0,
    "import os; x = os.listdir('.')": 1,
    "f.write('a')\nx = 1": 0,
    "'world.read'": 0,
    "print(f'{Path(a).read_text()}')": 1,
    'print(rf"""{os.getcwd()}""")': 1,
    "print(r'Path', 'os', b'os')": 0,
}
OPENS = {
    "p.open()": 1,
    "with (a / 'b').open('w', encoding='utf-8') as f: pass": 1,
    "x = [each.open() for each in Path('.').iterdir()]": 1,
    "Path('a').parent.joinpath('b')[0].open('r').close()": 1,
    "return_value = a.open().open()": 2,
    "if (p).open(): pass": 1,
    "if(p).open(): pass": 0,
    "x = 'a'.open()": 1,
    "f(p.open(), q.open())": 2,
    "x = p.open": 0,
    "open('a')": 0,
    "'p.open()'": 0,
}


@pytest.mark.parametrize(("code", "count"), LOOKS.items())
def test_a_statement_that_may_look_at_files_shows_them_first(code: str, count: int) -> None:
    changed = insert_file_calls(code, TOOLS).text
    ast.parse(changed)
    assert changed.count(SHOW) == count, changed
    assert as_written(changed) == code


@pytest.mark.parametrize(("code", "count"), OPENS.items())
def test_a_path_opens_the_file_objects_of_open(code: str, count: int) -> None:
    changed = insert_file_calls(code, TOOLS).text
    ast.parse(changed)
    assert changed.count(PATH) == count, changed
    assert as_written(changed) == code


def test_a_call_is_found_where_the_author_wrote_it() -> None:
    code = "é = p.open()\nfor x in é:\n    y = world.read('ü', [a.open() for b in c]); z = world.list()"
    changed = insert_file_calls(code, TOOLS)
    found = []
    for start in (at for at in range(len(changed.text)) if changed.text.startswith("world.", at)):
        offset = len(changed.text[:start].encode())
        text = code.encode()[changed.position(offset) :].decode()
        found.append(text.partition("(")[0])
    assert found == ["world.read", "world.list"]


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


@settings(deadline=None)
@given(PIECES)
@example("p.open()for x in f:\n    ")
def test_any_text_can_be_changed_and_changed_back(code: str) -> None:
    assert as_written(insert_file_calls(code, TOOLS).text) == code


@pytest.mark.parametrize(
    "piece",
    [
        '"""',
        "'''\\",
        "for x in f:\n",
        "a.open()",
        ".open(",
        "world;",
        "[x for x in f",
        "(",
        "f'{",
        "for x in ",
        "try:\n",
    ],
)
def test_the_scan_of_hostile_code_takes_linear_time(piece: str) -> None:
    sizes = [scan_steps("for x in f:\n" + piece * count) for count in (500, 1_000)]
    assert sizes[1] < 3 * sizes[0]


def scan_steps(code: str) -> int:
    """How many lines of Python a scan takes."""
    steps = 0

    def count(_frame: object, _event: str, _argument: object) -> object:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        insert_file_calls(code, TOOLS)
    finally:
        sys.settrace(before)
    return steps


def check(code: str) -> int:
    """Check that code with calls parses, and return how many there are."""
    inserted = insert_file_calls(code, TOOLS)
    changed = inserted.text
    ast.parse(changed)
    assert changed.count("\n") == code.count("\n")
    assert as_written(changed) == code
    assert inserted.position(len(changed.encode())) == len(code.encode())
    return changed.count(REFILL)
