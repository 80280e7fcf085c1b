"""Text that a stranger chooses is searched in linear time: in these sizes, anything else would take many minutes."""

from collections.abc import Callable

import pytest

from holdfast.cli.terminal.answer_stream import _without_blank_ends
from holdfast.cli.terminal.wrap import wrap
from holdfast.commands.git.clean_config import without_user_info
from holdfast.config.toml_source import position_of
from holdfast.core.globs import match_glob
from holdfast.core.text import escape_invisible, mark_lookalikes
from holdfast.gate.labels.argument_levels import _EMAIL, _URL

SIZE = 300_000
SEARCHES: dict[str, Callable[[], object]] = {
    "a settings file with a line of spaces": lambda: position_of("[budget]\nusd = 1\n" + " " * SIZE, "budget.usd"),
    "a settings file with a name and spaces": lambda: position_of("a" + " " * SIZE + "\nusd = 1\n", "usd"),
    "addresses in a long word": lambda: _EMAIL.findall("a" * SIZE),
    "addresses in a row of signs": lambda: _EMAIL.findall("a@b" + "." * SIZE),
    "half addresses": lambda: _EMAIL.findall("www.a@" * (SIZE // 6)),
    "links without an end": lambda: _URL.findall("www." + "." * SIZE),
    "what a git server says": lambda: without_user_info("a" * SIZE),
    "a name of two scripts": lambda: mark_lookalikes("\u0430b" * (SIZE // 2)),
    "joined emoji": lambda: escape_invisible("\u2600\ufe0f\u200d" * (SIZE // 3)),
    "spaces to be wrapped": lambda: wrap("a" + " " * SIZE, 80),
    "empty lines in an answer": lambda: _without_blank_ends("x" + "\n" * SIZE + "x"),
    "a glob and a long name": lambda: match_glob("*a" * 500 + "b", "a" * 4000),
}  # fmt: skip


@pytest.mark.promise("P14")
@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_in_hostile_text_takes_linear_time(search: str) -> None:
    SEARCHES[search]()


def test_the_searches_find_what_they_look_for() -> None:
    assert position_of("[budget]\n  usd  = 1\n", "budget.usd") == (2, 10)
    assert _EMAIL.findall("write to ada@example.com,x.y@b.de.") == ["ada@example.com", "x.y@b.de"]
    assert without_user_info("9https://u:p@h ssh://git:p@h") == "9https://h ssh://git@h"
    assert mark_lookalikes("p\u0430ssword") == "p\u0430<U+0430>ssword"
    assert _without_blank_ends("\x1b[1m \n\na\n\nb\n \n") == "a\n\nb"
    assert wrap("a b  ", 80) == ["a b"]
