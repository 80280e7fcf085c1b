"""Escaping of invisible characters, and plurals."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import (
    Json,
    escape_invisible,
    escape_to_one_line,
    has_invisible,
    json_pieces,
    mark_lookalikes,
    pluralize,
)
from holdfast.core import text as text_module


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
        ("jamo\u115ffiller", "jamo<U+115F>filler"),
        ("private\ue000use", "private<U+E000>use"),
        ("heart \u2764\ufe0f, keycap 1\ufe0f\u20e3", "heart \u2764\ufe0f, keycap 1\ufe0f\u20e3"),
        (
            "family \U0001f468\u200d\U0001f469\u200d\U0001f467",
            "family \U0001f468\u200d\U0001f469\u200d\U0001f467",
        ),
        ("two selectors \u2764\ufe0f\ufe0f", "two selectors \u2764\ufe0f<U+FE0F>"),
        ("other selector \u2764\ufe01", "other selector \u2764<U+FE01>"),
        ("joiner at the end \U0001f468\u200d", "joiner at the end \U0001f468<U+200D>"),
        ("joined letters a\u200db", "joined letters a<U+200D>b"),
    ],
)
def test_invisible_characters_are_escaped(text: str, seen: str) -> None:
    assert escape_invisible(text) == seen


@given(st.text())
def test_escaped_text_contains_no_invisible_character(text: str) -> None:
    assert escape_invisible(escape_invisible(text)) == escape_invisible(text)
    assert not has_invisible(escape_invisible(text))
    assert "\n" not in escape_to_one_line(text)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 turns"),
        (1, "1 turn"),
        (1.0, "1 turn"),
        (2, "2 turns"),
        (2.5, "2.5 turns"),
        (1200, "1,200 turns"),
    ],
)
def test_a_count_is_followed_by_its_noun(number: float, shown: str) -> None:
    assert pluralize(number, "turn") == shown


def test_an_irregular_plural_can_be_given() -> None:
    assert (pluralize(1, "reply", "replies"), pluralize(2, "reply", "replies")) == ("1 reply", "2 replies")


@pytest.mark.parametrize(
    "text",
    [
        "p\u0430ssword.txt", "confi\u0261", "etc\u2215passwd", "\u216cib", "\U0001d41bin", "\U0001d429\U0001d41a\U0001d42c",
        "\uff50\uff41\uff53\uff53", "a\u2024txt", "--\u2212f", "\ufb01le", "\u0430\u0440\u0440\u04cf\u0435", "https\uff1a//a.example",
    ],
)  # fmt: skip
@pytest.mark.promise("P12")
def test_characters_that_only_look_latin_are_marked(text: str) -> None:
    marked = mark_lookalikes(text)
    assert "<U+" in marked
    assert re.sub(r"<U\+[0-9A-F]+>", "", marked) == text


@pytest.mark.parametrize("text", ["naïve café", "Größe", "привет мир", "日本語.txt", "العربية", "plain.txt"])
def test_words_of_other_languages_are_not_marked(text: str) -> None:
    assert mark_lookalikes(text) == text


@given(
    st.lists(
        st.sampled_from(["a", "\x01", "\u200d", "\ufe0f", "\U0001f469", "\u2764", "1", "\u20e3"]), max_size=60
    )
)
def test_a_long_text_is_escaped_in_pieces_as_it_is_whole(characters: list[str]) -> None:
    text = "".join(characters)
    with pytest.MonkeyPatch.context() as patch:
        whole = escape_invisible(text)
        patch.setattr(text_module, "_PIECE_CHARACTERS", 3)
        assert escape_invisible(text) == whole


def test_an_emoji_without_end_does_not_make_a_piece_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "_PIECE_CHARACTERS", 8)
    pieces = list(text_module._pieces("\U0001f469\u200d" * 1000))
    assert max(map(len, pieces)) <= 72


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(_JSON)
def test_json_in_pieces_is_the_indented_document(value: Json) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "_PIECE_CHARACTERS", 3)
        assert "".join(json_pieces(value)) == json.dumps(value, indent=2, ensure_ascii=False)
