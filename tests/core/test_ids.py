"""Ids and names: a valid one is safe as a key and as part of a path."""

import re

import pytest

from holdfast.core import FakeClock, check_session_id, new_session_id, sanitise_name
from holdfast.core.errors import InvalidId, InvalidName


@pytest.mark.parametrize(
    "good", ["a", "_x", "0", "a.b-c_d", "550e8400-e29b-41d4-a716-446655440000", "x" * 128]
)
def test_a_valid_id_is_returned_unchanged(good: str) -> None:
    assert check_session_id(good) == good


@pytest.mark.parametrize(
    "bad",
    [
        "",
        ".",
        "..",
        ".a",
        "a.",
        "-a",
        "a/b",
        "a\\b",
        "a b",
        "a\n",
        "é",
        "index",
        "Con.txt",
        "lpt9",
        "x" * 129,
        7,
    ],
)
def test_an_invalid_id_is_refused(bad: object) -> None:
    with pytest.raises(InvalidId):
        check_session_id(bad)


def test_a_new_id_is_the_time_in_utc_with_a_random_suffix_and_is_valid() -> None:
    id = new_session_id(FakeClock(now_ms=1_700_000_000_007))
    assert re.fullmatch(r"2023-11-14-22-13-20-007-[a-z0-9]{4}", id)
    assert check_session_id(id) == id


@pytest.mark.parametrize(
    ("given", "alias"),
    [
        ("Fix the Report", "fix-the-report"),
        ("  Ünïcode  ", "unicode"),
        ("a -- b", "a-b"),
        ("-x-", "x"),
        ("v1.2_final", "v1.2_final"),
        ("y" * 63 + "-z", "y" * 63),
        ("y" * 63 + ".z", "y" * 63),
        ("y" * 62 + ".-z", "y" * 62),
    ],
)
def test_a_name_becomes_an_alias_of_plain_characters(given: str, alias: str) -> None:
    assert sanitise_name(given) == alias
    assert sanitise_name(alias) == alias


@pytest.mark.parametrize(
    "bad", ["", "   ", "///", "a/b", "a\\b", "a..b", "a\0b", ".a", "a.", "日本", "Index", "nul.txt"]
)
def test_a_name_without_a_usable_character_is_refused(bad: str) -> None:
    with pytest.raises(InvalidName):
        sanitise_name(bad)
