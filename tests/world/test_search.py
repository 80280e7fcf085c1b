"""A search ends at its time limit, whatever the expression, and blocks nothing else."""

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.world import MemoryWorld
from holdfast.world.search import MAX_LINE_LENGTH, MAX_QUERY_LENGTH, search_files


@pytest.mark.parametrize("query", [r"(a+)+$", r"(a|aa)+$", r"(.*a){20}b", r"((a*)*)*b"])
def test_an_expression_that_never_ends_is_stopped(query: str) -> None:
    content = {"f": b"a" * 5000 + b"!"}
    with pytest.raises(TimeoutError):
        search_files(content, content.__getitem__, query, limit=10, timeout_seconds=0.1)


@pytest.mark.parametrize("query", ["", "x" * (MAX_QUERY_LENGTH + 1), "(", "[z-a]", "(?P<n>", "*", "a{2,1}"])
def test_an_invalid_expression_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        MemoryWorld({"f": b"a"}).search(query)


def test_a_negative_limit_is_refused_and_zero_finds_nothing() -> None:
    world = MemoryWorld({"f": b"a"})
    with pytest.raises(InvalidInput):
        world.search("a", limit=-1)
    assert world.search("a", limit=0) == world.search("[a]", limit=0) == ()


def test_plain_text_and_expressions_find_the_same_lines() -> None:
    world = MemoryWorld({"f": "grüße\nfoo bar\r\nno\nfoo bar".encode(), "long": b"foo bar" + b"x" * 10_000})
    assert world.search("foo bar") == world.search("foo[ ]bar")
    assert [hit.line for hit in world.search("foo bar", "f")] == [2, 4]
    assert [hit.text for hit in world.search("gr..e")] == ["grüße"]
    assert len(world.search("foo bar", "long")[0].text) == MAX_LINE_LENGTH


def test_too_much_to_search_is_said() -> None:
    big = b"x" * (8 << 20)
    with pytest.raises(InvalidInput):
        search_files([str(n) for n in range(9)], lambda _: big, "x.y", limit=1)
