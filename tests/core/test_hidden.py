"""What a person would not see is written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import has_hidden, on_one_line, visible


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
    assert visible(text) == seen


@given(st.text())
def test_what_is_shown_holds_nothing_that_is_not_seen(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert not has_hidden(visible(text))
    assert "\n" not in on_one_line(text)
