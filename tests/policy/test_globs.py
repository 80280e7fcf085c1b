"""Globs: what they match, and that they agree with a slow matcher that follows the definition."""

import csv
import json
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.reference_patterns import glob

from holdfast.core.errors import InvalidInput
from holdfast.core.globs import any_glob, compile_file_glob, compile_glob, glob_problem, normalize_path
from holdfast.policy import match_glob

with (Path(__file__).parent / "data" / "glob-cases.tsv").open() as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_globs_match_as_the_table_of_cases_says(row: dict[str, str]) -> None:
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
    ("[a-c].txt", "b.txt"),
    ("[^ab].txt", "c.txt"),
    ("[]a].txt", "].txt"),
    ("[!]a].txt", "b.txt"),
    ("[*].txt", "*.txt"),
    ("[a.txt", "[a.txt"),
    ("a**b", "axb"),
    ("*", "a\nb"),
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
    ("[.]env", ".env"),
    ("[^ab].txt", "a.txt"),
    ("[!]a].txt", "].txt"),
    ("[*].txt", "a.txt"),
    ("[!a]b", "/b"),
]


@pytest.mark.parametrize(("pattern", "path"), MATCHES)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert match_glob(pattern, path)


@pytest.mark.parametrize(("pattern", "path"), MISSES)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not match_glob(pattern, path)


FOR_DENY = [
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


@pytest.mark.parametrize(("pattern", "path"), FOR_DENY)
def test_a_deny_pattern_also_matches(pattern: str, path: str) -> None:
    assert match_glob(pattern, path, for_deny=True)


def test_a_deny_pattern_does_not_match_siblings() -> None:
    assert not match_glob("secrets", "secrets2", for_deny=True)
    assert not match_glob("secrets", "/secrets", for_deny=True)
    assert not match_glob("a/secrets", "secrets", for_deny=True)


@pytest.mark.parametrize(
    "pattern",
    ["", "!a", "{a,b}", "/etc/*", "../a", "a**", "[a", "[^a]", "[z-a]", "C:/x", "a\\b", "a" * 1025],
)
def test_an_ambiguous_pattern_is_refused_in_a_policy(pattern: str) -> None:
    assert glob_problem(pattern) is not None


PATTERN = st.lists(
    st.one_of(st.just("**"), st.text(alphabet="ab.*?", min_size=1, max_size=4)), min_size=1, max_size=5
)
PATH = st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=6)


@settings(deadline=None)
@given(PATTERN, PATH, st.booleans())
def test_the_matcher_agrees_with_the_definition(pattern: list[str], path: list[str], for_deny: bool) -> None:
    pattern = [one for one in pattern if one not in (".", "..") and ("**" not in one or one == "**")]
    path = [one for one in path if one not in (".", "..")]
    if pattern and path:
        assert match_glob("/".join(pattern), "/".join(path), for_deny=for_deny) == glob(
            "/".join(pattern), "/".join(path), for_deny
        )


@settings(deadline=None)
@given(PATTERN, PATH)
def test_a_deny_pattern_matches_all_that_an_allow_pattern_matches(
    pattern: list[str], path: list[str]
) -> None:
    text, name = "/".join(pattern), "/".join(path)
    if glob_problem(text) is None and match_glob(text, name):
        assert match_glob(text, name, for_deny=True)


@settings(deadline=None)
@given(st.text(max_size=30), st.booleans())
def test_every_match_is_a_plain_relative_path(path: str, for_deny: bool) -> None:
    if any(match_glob(pattern, path, for_deny=for_deny) for pattern in ("**", "**/*", "*", ".*")):
        normal = normalize_path(path)
        assert normal is not None
        assert ".." not in normal.split("/")


@settings(deadline=None)
@given(PATTERN, PATH)
def test_case_and_unicode_form_do_not_matter_to_a_deny_pattern(pattern: list[str], path: list[str]) -> None:
    text, name = "/".join(pattern) + "é", "/".join(path) + "É"
    if glob_problem(text) is None:
        decomposed = unicodedata.normalize("NFD", name)
        assert match_glob(text, name, for_deny=True) == match_glob(text, decomposed.lower(), for_deny=True)


@pytest.mark.parametrize("for_deny", [False, True])
def test_no_pattern_is_slow_on_a_hostile_path(for_deny: bool) -> None:
    started = time.process_time()
    for pattern, path in (
        ("**/" + "*a" * 20 + "*b/**/x", "/".join(["a" * 200] * 200)),
        ("*a" * 100 + "b", "a" * 255),
        ("**/a/" * 100 + "b", "a/" * 1000 + "c"),
        ("**/" + "a*/" * 100 + "b", "aaaa/" * 1000 + "c"),
    ):
        assert not match_glob(pattern, path, for_deny=for_deny)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("pattern", ["", ".", "/", "/a", "../a", "a\\b", "a\0b", "[z-a]", "a" * 1025])
def test_a_listing_refuses_a_pattern_that_can_match_no_file(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        compile_file_glob(pattern)


@settings(deadline=None)
@given(st.text("ab*?[]!^-/.\\\0", max_size=12))
def test_every_string_is_a_glob_or_refused(pattern: str) -> None:
    try:
        compile_file_glob(pattern).matches("a/b")
    except InvalidInput:
        return


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [("**/*.py", "."), ("src/a/*.py", "src/a"), ("src/a.py", "src"), ("a.py", "."), ("./src//**", "src")],
)
def test_the_base_folder_contains_every_match(pattern: str, folder: str) -> None:
    assert compile_file_glob(pattern).base_folder == folder


@given(
    st.lists(st.sampled_from([pattern for pattern, _ in MATCHES]), max_size=5),
    st.sampled_from([".", *(path for _, path in MATCHES), *(path for _, path in MISSES)]),
    st.booleans(),
)
@settings(deadline=None)
def test_several_globs_together_match_what_one_of_them_matches(
    patterns: list[str], path: str, for_deny: bool
) -> None:
    globs = [compile_glob(pattern, for_deny) for pattern in patterns]
    assert any_glob(globs)(path) == any(glob.matches(path) for glob in globs)
