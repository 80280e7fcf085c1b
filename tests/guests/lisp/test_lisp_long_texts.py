"""Long texts with a wide character, which are kept as UTF-8: every procedure has the result that it has for any other string."""

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guests.lisp.programs import Host, new_guest, run, value

from holdfast.core import Answer, EscalationId, Failed, JsonObject, Parked, Returned
from holdfast.guests.contract import RunRequest
from holdfast.guests.lisp import long_text
from holdfast.guests.lisp.long_text import LongText, as_text

TEXT = "\U0001f600é" + "".join(f"{number},{'ab' * 50}\n" for number in range(70_000))
"""As a string of Python it takes 30 MB; as UTF-8 a quarter of it."""
SHORT = TEXT[:140]

RESULTS: dict[str, tuple[str, Callable[[str], object]]] = {
    "length": ("(string-length t)", len),
    "replace": ('(string-length (string-replace t "ab" "b"))', lambda t: len(t.replace("ab", "b"))),
    "widened": ('(string-length (string-replace t "\\n" "é\\n"))', lambda t: len(t.replace("\n", "é\n"))),
    "slice": ("(substring t 1 30)", lambda t: t[1:30]),
    "end": ("(substring t (- (string-length t) 5))", lambda t: t[-5:]),
    "split": ('(length (string-split t "\\n"))', lambda t: len(t.split("\n"))),
    "first line": ('(first (string-split t "\\n"))', lambda t: t.split("\n")[0]),
    "join": (
        '(string-length (string-join (string-split t "\\n") ";"))',
        lambda t: len(";".join(t.split("\n"))),
    ),
    "append": ('(string-length (string-append "x" t t))', lambda t: 2 * len(t) + 1),
    "index": ('(string-index t "9,a")', lambda t: t.find("9,a")),
    "start": ('(string-index t "\U0001f600")', lambda t: 0),
    "no index": ('(string-index t "zzz")', lambda t: None),
    "contains": ('(string-contains? t "9,a")', lambda t: True),
    "prefix": ('(string-prefix? "\U0001f600" t)', lambda t: True),
    "suffix": ('(string-suffix? "b\\n" t)', lambda t: True),
    "same": ('(string=? t (string-append t ""))', lambda t: True),
    "equal": ('(equal? t (string-append t "x"))', lambda t: False),
    "order": ('(string<? "z" t)', lambda t: True),
    "is a string": ("(string? t)", lambda t: True),
    "part of it": ("(string-length (substring t 0 10))", lambda t: 10),
}


def file_host(text: str) -> Host:
    """A host that returns a text only as base64, as `world.read` does if it takes too much memory."""

    def read(arguments: JsonObject) -> Answer:
        if arguments.get("encoding") == "base64":
            return Returned(value=base64.b64encode(text.encode()).decode())
        return Failed(error="OSError", reason="this read takes 32,000,000 bytes of memory as one text")

    return Host(answer_functions={"world.read": read})


@pytest.mark.parametrize("name", RESULTS)
async def test_a_procedure_has_the_result_that_it_has_for_a_short_string(name: str) -> None:
    code, expected = RESULTS[name]
    assert isinstance(as_text(TEXT.encode()), LongText)
    for text in (TEXT, SHORT + "9,ab\n"):
        assert await value(f'(define t (world/read "f")) {code}', file_host(text)) == expected(text)


async def test_a_long_text_is_written_as_base64_and_nothing_else_takes_it() -> None:
    host = file_host(TEXT)
    await value('(world/write "g" (string-replace (world/read "f") "a" "c"))', host)
    operation, arguments = host.calls[-1]
    assert operation == "world.write"
    assert arguments["encoding"] == "base64"
    assert base64.b64decode(str(arguments["content"])).decode() == TEXT.replace("a", "c")
    for code in ("(llm/complete t)", "(string-upcase t)", "(string->number t)", "(table t 1)", "(display t)"):
        ended = await run(f'(define t (world/read "f")) {code}', file_host(TEXT))
        assert ended.status == "error", code
    ended = await run('(world/read "f")', file_host(TEXT))
    assert ended.value == f"#<a string of {len(TEXT):,} characters>"


async def test_a_long_text_stays_in_a_variable_and_in_a_run_that_waits() -> None:
    guest = new_guest()
    host = file_host(TEXT)

    async def park_bytes(operation: str, arguments: JsonObject) -> Answer:
        return (
            Parked(escalation=EscalationId("e"))
            if arguments.get("encoding")
            else await host(operation, arguments)
        )

    parked = await guest.run(RunRequest(code='(define t (world/read "f"))'), park_bytes)
    assert parked.status == "parked"
    assert parked.snapshot is not None
    answer = await host("world.read", {"encoding": "base64"})
    ended = await guest.resume(parked.snapshot, answer, RunRequest(code=""), host)
    assert ended.status == "ok", ended.error
    other = new_guest()
    await other.restore(await guest.snapshot())
    ended = await other.run(RunRequest(code="(string-length t)"), host)
    assert ended.value == len(TEXT)


async def test_texts_that_are_too_large_to_save_end_the_run() -> None:
    code = '(define a (string-repeat "a" 40000000)) (define b (string-repeat "b" 40000000))'
    ended = await run(code)
    assert ended.status == "limit"
    assert "can be saved" in ended.error
    code = '(string-length (string-repeat "a" 40000000)) (string-length (string-repeat "b" 40000000))'
    assert await value(code) == 40_000_000


@given(st.text(min_size=1, max_size=300), st.data())
def test_an_index_and_its_place_in_the_bytes_are_inverse(text: str, data: st.DataObject) -> None:
    text = text.encode("utf-8", "replace").decode()
    piece = long_text._PIECE
    long_text._PIECE = data.draw(st.integers(4, 20))
    try:
        kept = LongText(text.encode())
        assert len(kept) == len(text)
        index = data.draw(st.integers(0, len(text)))
        assert kept.offset(index) == len(text[:index].encode())
        if index < len(text):
            assert kept.index(kept.offset(index)) == index
    finally:
        long_text._PIECE = piece
