"""What a person would not see is written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import escape_invisible, escape_to_one_line, has_invisible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ntext\twith ü and 漢字", "plain\ntext\twith ü and 漢字"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("bidi\u202eevil", "bidi<U+202E>evil"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("selector\ufe0f", "selector<U+FE0F>"),
        ("esc\x1b[2J", "esc<U+001B>[2J"),
        ("nbsp\u00a0", "nbsp<U+00A0>"),
        ("hangul\u3164filler", "hangul<U+3164>filler"),
    ],
)
def test_invisible_characters_are_made_visible(text: str, seen: str) -> None:
    assert escape_invisible(text) == seen


@given(st.text())
def test_what_is_shown_holds_nothing_that_is_not_seen(text: str) -> None:
    assert escape_invisible(escape_invisible(text)) == escape_invisible(text)
    assert not has_invisible(escape_invisible(text))
    assert "\n" not in escape_to_one_line(text)
