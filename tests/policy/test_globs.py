"""Globs: what they match, and that they agree with a matcher anyone can follow."""

import csv
import json
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.naive_patterns import glob

from holdfast.core.globs import plain_segments, problem_of_glob
from holdfast.policy import match_glob

with (Path(__file__).parent / "data" / "glob-cases.tsv").open() as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_list_of_globs_lets_pass_what_the_table_says(row: dict[str, str]) -> None:
    patterns = json.loads(row["operation"].removeprefix("glob "))
    path = json.loads(row["input_json"])
    assert any(match_glob(pattern, path) for pattern in patterns) == (row["ours"] == "allow")


MATCHES = [
    ("**/*", "a.ts"),
    ("**/*", "src/x/y.ts"),
    ("**/*", "./a.ts"),
    ("src/**/*", "src//a.ts"),
    ("src/**/*", "src/a/b.ts"),
    ("src/**", "src/a/b"),
    ("**/.env", "a/.env"),
    (".git/**", ".git/config"),
    ("*.py", "a.py"),
    ("a*b*c", "axxbyyc"),
    ("a?c", "abc"),
    ("[ab].txt", "b.txt"),
    ("[!ab].txt", "c.txt"),
    ("a/**/b/**/c", "a/x/b/y/z/c"),
    ("a/**/b", "a/b"),
    (".", "."),
    ("**", "a/b"),
]
MISSES = [
    ("**/*", ".env"),
    ("**/*", "a/.hidden/b"),
    ("**/*", "/etc/passwd"),
    ("**/*", "../a"),
    ("**/*", "a/../b"),
    ("**/*", "C:/x"),
    ("**/*", "C:x"),
    ("**/*", "\\\\host\\share"),
    ("**/*", "//host/share"),
    ("**/*", "a\0b"),
    ("**/*", ""),
    ("**/*", "."),
    ("src/**", "src"),
    ("src/**/*", "Src/a"),
    ("src/*", "src/a/b"),
    ("a*ab", "ab"),
    ("*.py", "a/b.py"),
    ("[!ab].txt", "a.txt"),
    ("[!a]", ".x"),
    ("?env", ".env"),
]


@pytest.mark.parametrize(("pattern", "path"), MATCHES)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert match_glob(pattern, path)


@pytest.mark.parametrize(("pattern", "path"), MISSES)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not match_glob(pattern, path)


WIDE = [
    ("secrets", "secrets/a/b"),
    ("secrets/", "secrets"),
    ("secrets/**", "secrets"),
    ("secrets/**", "secrets/.key"),
    ("secrets/**", "SECRETS/key"),
    ("**/*.pem", "a/.b/KEY.PEM"),
    ("**/*", ".env"),
    ("**", "."),
    ("caf\u00e9", "cafe\u0301"),
    ("cafe\u0301", "CAF\u00c9/x"),
    ("*", "a/b/c"),
]


@pytest.mark.parametrize(("pattern", "path"), WIDE)
def test_read_wide_a_pattern_also_covers(pattern: str, path: str) -> None:
    assert match_glob(pattern, path, is_wide=True)


def test_read_wide_a_pattern_still_covers_nothing_beside_it() -> None:
    assert not match_glob("secrets", "secrets2", is_wide=True)
    assert not match_glob("secrets", "/secrets", is_wide=True)
    assert not match_glob("a/secrets", "secrets", is_wide=True)


@pytest.mark.parametrize(
    "pattern", ["", "!a", "{a,b}", "/etc/*", "../a", "a**", "[a", "[z-a]", "C:/x", "a\\b"]
)
def test_a_pattern_that_would_surprise_is_refused(pattern: str) -> None:
    assert problem_of_glob(pattern) is not None


PATTERN = st.lists(
    st.one_of(st.just("**"), st.text(alphabet="ab.*?", min_size=1, max_size=4)), min_size=1, max_size=5
)
PATH = st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=6)


@settings(deadline=None)
@given(PATTERN, PATH, st.booleans())
def test_the_matcher_agrees_with_the_definition(pattern: list[str], path: list[str], is_wide: bool) -> None:
    pattern = [one for one in pattern if one not in (".", "..") and ("**" not in one or one == "**")]
    path = [one for one in path if one not in (".", "..")]
    if pattern and path:
        assert match_glob("/".join(pattern), "/".join(path), is_wide=is_wide) == glob(
            "/".join(pattern), "/".join(path), is_wide
        )


@settings(deadline=None)
@given(PATTERN, PATH)
def test_what_matches_narrow_matches_wide(pattern: list[str], path: list[str]) -> None:
    text, name = "/".join(pattern), "/".join(path)
    if problem_of_glob(text) is None and match_glob(text, name):
        assert match_glob(text, name, is_wide=True)


@settings(deadline=None)
@given(st.text(max_size=30), st.booleans())
def test_whatever_matches_is_a_plain_relative_path(path: str, is_wide: bool) -> None:
    if any(match_glob(pattern, path, is_wide=is_wide) for pattern in ("**", "**/*", "*", ".*")):
        segments = plain_segments(path)
        assert segments is not None
        assert ".." not in segments


@settings(deadline=None)
@given(PATTERN, PATH)
def test_the_form_of_unicode_and_the_case_do_not_matter_read_wide(
    pattern: list[str], path: list[str]
) -> None:
    text, name = "/".join(pattern) + "é", "/".join(path) + "É"
    if problem_of_glob(text) is None:
        decomposed = unicodedata.normalize("NFD", name)
        assert match_glob(text, name, is_wide=True) == match_glob(text, decomposed.lower(), is_wide=True)


def test_a_hostile_path_costs_no_more_than_its_length() -> None:
    pattern = "**/" + "*a" * 20 + "*b/**/x"
    path = "/".join(["a" * 200] * 200)
    started = time.process_time()
    assert not match_glob(pattern, path)
    assert time.process_time() - started < 2
