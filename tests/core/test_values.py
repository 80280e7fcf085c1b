"""Digests and sizes of values: the same for large texts, which are handled in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import JsonObject, values
from holdfast.core.values import digest, digest_call, text_bytes, text_memory

TEXTS = st.text(st.sampled_from('a"\\\n\0é€😀\x7f'), max_size=30)


@given(arguments=st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=3), max_size=4))
def test_the_digest_of_a_call_is_that_of_its_json_however_long_its_texts(arguments: JsonObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_PIECE", 3)
        assert digest_call("world.write", arguments) == digest(["world.write", arguments])


@given(texts=st.lists(TEXTS, max_size=4))
def test_the_bytes_of_all_texts_are_counted(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_PIECE", 3)
        assert text_bytes({"é": list(texts), "b": [1, None]}) == 3 + sum(len(each.encode()) for each in texts)


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 1), ("a", 1), ("aé\xff", 1), ("éĀ", 2), ("a\uffff", 2), ("a\U00010000", 4), ("\U0010ffffé", 4)],
)
def test_the_memory_of_a_text_is_known_from_its_bytes(text: str, width: int) -> None:
    assert text_memory(text.encode()) == width * len(text)
    over_pieces = "a" * (1 << 20) + text + "a" * (1 << 20)
    assert text_memory(over_pieces.encode()) == width * len(over_pieces)
    if text:
        with pytest.raises(UnicodeDecodeError):
            text_memory(over_pieces.encode() + text[:1].encode() + b"\xc3")
