"""The flow of Python programs: what is listed for each argument, and what counts as unknown."""

import json
import time
from pathlib import Path

import pytest

from holdfast.core import Origin, Origins
from holdfast.policy.flow.python_flow import python_flow
from holdfast.policy.flow.result import Flow, Signature

DATA = Path(__file__).parent.parent / "data"
CASES = json.loads((DATA / "flow-cases.json").read_text())
CHOICES = json.loads((DATA / "flow-choices.json").read_text())
LAUNDERING = json.loads((DATA / "flow-laundering.json").read_text())
TOOLS = {
    name: Signature(operation=name, parameters={each: each for each in parameters})
    for name, parameters in CASES["tools"].items()
}
MAIL = {
    "mail.search": Signature(operation="mail.search", parameters={"query": "query"}),
    "mail.send": Signature(operation="mail.send", parameters={"to": "to", "body": "body"}),
    "llm": Signature(operation="llm.complete", parameters={"prompt": "prompt"}),
}


def _flow(code: str, variables: dict[str, Origins] | None = None) -> Flow:
    return python_flow(code, tools=TOOLS | MAIL, variables=variables or {})


def _given(code: str, argument: str = "to", variables: dict[str, Origins] | None = None) -> Origins:
    """What the argument of the last call in a program is made of."""
    flow = _flow(code, variables)
    assert not flow.unknown, flow.unknown
    place = max(flow.sites, key=lambda each: each[1])
    return flow.sites[place].origins_of(argument)


def _paths(origins: Origins) -> set[tuple[str, tuple[str, ...]]]:
    return {(one.operation, one.path) for one in origins if one.kind != "written" and not one.is_chosen}


@pytest.mark.parametrize(
    "code",
    [pytest.param(case["code"], id=case["name"]) for each in (CASES, CHOICES) for case in each["cases"]],
)
def test_a_strangers_words_are_never_taken_for_the_authors(code: str) -> None:
    flow = _flow(code)
    sites = [site for site in flow.sites.values() if "pay" in site.operations]
    made_of = [site.origins_of("to") for site in sites]
    assert flow.unknown or not sites or any(
        one.operation == "read" or one.kind == "unknown" for each in made_of for one in each
    )  # fmt: skip


@pytest.mark.parametrize(
    "code", [pytest.param(case["code"], id=case["name"]) for case in LAUNDERING["cases"]]
)
def test_a_strangers_words_are_listed_however_they_travel(code: str) -> None:
    flow = _flow(code)
    made_of = [site.origins_of("to") for site in flow.sites.values() if "pay" in site.operations]
    assert flow.unknown or any(
        one.kind == "unknown" or (one.operation == "read" and not one.is_chosen)
        for each in made_of
        for one in each
    )


def test_a_field_of_a_result_is_followed_through_loops_filters_and_containers() -> None:
    code = """
found = mail.search(query="bill")
senders = [m["sender"] for m in found if "rent" in m["body"]]
best = {"first": sorted(senders)[0], "text": found[0]["body"]}
mail.send(to=best["first"], body=best["text"])
"""
    assert _paths(_given(code)) == {("mail.search", ("sender",))}
    assert _paths(_given(code, "body")) == {("mail.search", ("body",))}


def test_what_only_decided_is_listed_as_a_choice() -> None:
    made_of = _given("""
found = mail.search(query="bill")
to = "a@example.com" if "x" in found[0]["body"] else "b@example.com"
mail.send(to=to, body="")
""")
    assert {one.text for one in made_of if one.kind == "written"} >= {"a@example.com", "b@example.com"}
    assert _paths(made_of) == set()
    assert any(one.is_chosen and one.path == ("body",) for one in made_of)


def test_a_field_of_a_container_of_the_program_is_not_a_field_of_the_result() -> None:
    code = """
m = mail.search(query="x")[0]
mine = {"sender": m["body"]}
mail.send(to=mine["sender"], body="")
"""
    assert _paths(_given(code)) == {("mail.search", ("body",))}


def test_a_key_that_is_not_known_may_be_any_field() -> None:
    code = "m = mail.search(query='x')[0]\nk = 'bo' + 'dy'\nmail.send(to=m[k], body='')"
    assert ("mail.search", ("*",)) in _paths(_given(code))


def test_a_position_in_a_list_is_no_field() -> None:
    code = """
found = mail.search(query="x")
for i in range(len(found)):
    mail.send(to=found[i]["sender"], body="")
"""
    assert _paths(_given(code)) == {("mail.search", ("sender",))}


def test_an_assignment_at_the_top_replaces_the_old_value() -> None:
    assert not _paths(_given("x = read(p='a')\nx = 'me'\npay(to=x)"))
    assert _paths(_given("x = read(p='a')\ndef f():\n    return x\nx = 'me'\npay(to=f())"))


def test_places_are_in_bytes() -> None:
    code = "é = 'ü'; pay(to=read(p='ä'))"
    flow = _flow(code)
    assert {code.encode()[start:end].decode() for start, end in flow.sites} == {
        "read(p='ä')",
        "pay(to=read(p='ä'))",
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_are_right_whatever_ends_a_line(end: str) -> None:
    code = f"x = 'ü'{end}y = 2{end}pay(to=x)"
    assert [code.encode()[start:stop] for start, stop in _flow(code).sites] == [b"pay(to=x)"]


@pytest.mark.parametrize(
    "code",
    [
        "list(map(pay, [read(p='x')]))",
        "from functools import partial\np = partial(pay, to=read(p='x'))\np()",
        "[pay][0](*[read(p='x')])",
        "@pay\ndef f(): pass",
        "d = {'f': pay}\nd['f'](to=read(p='x'))",
    ],
)
def test_a_tool_that_is_called_by_another_way_has_unknown_arguments(code: str) -> None:
    flow = _flow(code)
    place = (0, len(code.encode()))
    made_of = [flow.origins_of(each, "pay", "to") for each in (*flow.sites, place)]
    assert all(any(one.kind == "unknown" or one.operation == "read" for one in each) for each in made_of)


@pytest.mark.parametrize(
    "code",
    ["x = eval('read()')\npay(to=x)", "globals()['x'] = 1", "class A: pass", "from re import *", "x.y = 1", "(",
     "pay(to=().__class__)", "async def f(): pass", "match 1:\n    case x: pass", "def f():\n    yield 1\nf()", "x" * 70_000,
     "pay(to='\\ud800'", "a = " + "(" * 3000 + ")" * 3000],
)  # fmt: skip
def test_what_is_not_followed_is_unknown(code: str) -> None:
    flow = _flow(code)
    assert flow.unknown
    assert flow.origins_of((0, 1), "pay", "to") == {Origin(kind="unknown")}


def test_a_large_program_is_given_up_in_bounded_time() -> None:
    lines = [f"x{number} = [x{max(0, number - 7)}, read(p=x{number // 2})]" for number in range(1, 500)]
    code = "\n".join(["x0 = 'a'", *lines, "pay(to=x499)"])
    started = time.process_time()
    flow = _flow(code)
    assert flow.unknown or _paths(_given(code))
    assert time.process_time() - started < 5.0


def test_files_that_the_program_opens_are_listed_as_files() -> None:
    for code in ("pay(to=open('a').read())", "from pathlib import Path\npay(to=Path('a').read_text())"):
        assert any(one.kind == "file" for one in _given(code)), code


def test_a_name_that_nobody_assigned_is_unknown() -> None:
    assert Origin(kind="unknown") in _given("pay(to=somewhere)")


def test_variables_of_an_earlier_program_keep_their_origins() -> None:
    first = _flow("found = mail.search(query='x')\nme = 'a@example.com'\nboth = [found[0]['body']]")
    sender = "mail.send(to=found[0]['sender'], body='')"
    assert _paths(_given(sender, variables=first.variables)) == {("mail.search", ("sender",))}
    assert not _paths(_given("mail.send(to=me, body='')", variables=first.variables))
    assert _paths(_given("mail.send(to=both[0], body='')", variables=first.variables)) == {
        ("mail.search", ("body",))
    }


def test_what_is_added_to_a_variable_of_an_earlier_program_is_in_its_other_names() -> None:
    first = _flow("a = []\nb = a")
    second = _flow("a.append(read(p='x'))", first.variables)
    assert ("read", ()) in _paths(_given("pay(to=b[0])", variables=second.variables))


@pytest.mark.parametrize(
    "change", ["m['l'].append(read(p='x'))", "for v in m.values():\n    v[0] = read(p='x')"]
)
def test_what_is_added_inside_a_variable_of_an_earlier_program_is_in_the_others(change: str) -> None:
    first = _flow("l = ['me']\nm = {'l': l}")
    second = _flow(change, first.variables)
    assert ("read", ()) in _paths(_given("pay(to=l[0])", variables=second.variables))
    assert ("read", ()) in _paths(_given(f"{change}\npay(to=l[0])", variables=first.variables))


def test_a_function_of_an_earlier_program_is_not_followed() -> None:
    first = _flow("def f():\n    global x\n    x = read(p='a')\nx = 'me'")
    assert _flow("f()\npay(to=x)", first.variables).unknown
    first = _flow("from collections import defaultdict\nx = 'me'\nd = defaultdict(lambda: x)")
    assert _flow("x = read(p='x')\npay(to=d['a'])", first.variables).unknown


def test_what_a_program_shows_is_what_it_prints_and_ends_with() -> None:
    assert _paths(_flow("print(read(p='x')['a'])").shown) == {("read", ("a",))}
    assert _paths(_flow("m = read(p='x')\nm['b']").shown) == {("read", ("b",))}
    assert not _paths(_flow("m = read(p='x')\nlen(m)").shown)


def test_an_exception_may_carry_what_the_analysis_does_not_know() -> None:
    code = "import somewhere\ntry:\n    raise ValueError(somewhere.value)\nexcept ValueError as error:\n    pay(to=str(error))"
    assert Origin(kind="unknown") in _given(code)


@pytest.mark.parametrize(
    "earlier",
    [
        "class A: pass\nlen = read(p='x')",
        "class A: pass\nx = read(p='x')\ndef len(v):\n    return x",
        "class A: pass\nfrom somewhere import len",
        "exec('len = x')",
        "from somewhere import *",
        "len = read(p='x') if",
    ],
)
def test_a_program_that_is_not_followed_may_replace_what_a_name_means(earlier: str) -> None:
    first = _flow(earlier)
    second = _flow("class B: pass", first.variables)
    assert first.unknown
    assert second.unknown
    assert _flow("pay(to='a' + str(len('b')))", second.variables).unknown


def test_a_program_after_one_that_is_not_followed_is_followed() -> None:
    first = _flow("class A: pass\nx = read(p='x')")
    made_of = _given("y = str(len('b'))\npay(to=y)", variables=first.variables)
    assert not any(one.kind == "unknown" or one.operation for one in made_of)
    assert Origin(kind="unknown") in _given("pay(to=x)", variables=first.variables)


def test_a_module_keeps_what_a_program_that_is_not_followed_gave_it() -> None:
    first = _flow("class A: pass\nimport random\nrandom.seed(read(p='x'))")
    code = "import random\npay(to=str(random.random()))"
    assert Origin(kind="unknown") in _given(code, variables=first.variables)
    assert Origin(kind="unknown") not in _given(code)


def test_an_attribute_of_an_object_of_an_earlier_program_may_be_what_another_variable_holds() -> None:
    first = _flow("from collections import namedtuple\nl = ['me']\nq = namedtuple('Q', 'r')(l)")
    second = _flow("q.r.append(read(p='x'))", first.variables)
    assert ("read", ()) in _paths(_given("pay(to=l[1])", variables=second.variables))


def test_an_attribute_given_to_a_function_of_a_module_is_followed() -> None:
    code = "import copy\nfrom collections import namedtuple\nq = namedtuple('Q', 'r')(read(p='x'))\npay(to=copy.copy(q.r))"
    assert _paths(_given(code)) == {("read", ())}
