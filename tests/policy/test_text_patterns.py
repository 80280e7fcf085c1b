"""Regular expressions of policies: what they match, that they never backtrack, and what is refused."""

import random
import re
import time

import pytest

from holdfast.policy.rule_tests.pattern_syntax import PatternError
from holdfast.policy.rule_tests.text_patterns import MAX_STATES, TextPattern

ATOMS = ["a", "b", "c", "A", ".", "[ab]", "[^a]", "[a-c]", "[\\d_-]", "\\d", "\\w", "\\S", "1", "\\.", "\\n"]
REPEATS = ["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{1,}", "{0}"]


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    kind = rng.random()
    if depth > 3 or kind < 0.45:
        return rng.choice(ATOMS)
    if kind < 0.6:
        return random_pattern(rng, depth + 1) + random_pattern(rng, depth + 1)
    if kind < 0.72:
        return f"({random_pattern(rng, depth + 1)}|{random_pattern(rng, depth + 1)})"
    return f"(?:{random_pattern(rng, depth + 1)}){rng.choice(REPEATS)}"


def agrees_with_the_standard_library(seed: int, patterns: int) -> int:
    rng = random.Random(seed)
    matched = 0
    for _ in range(patterns):
        pattern = random_pattern(rng)
        if rng.random() < 0.2:
            pattern = f"^(?:{pattern})"
        if rng.random() < 0.2:
            pattern = f"(?:{pattern})$".replace("(?:^", "^(?:")
        narrow, wide = TextPattern(pattern), TextPattern(pattern, for_deny=True)
        whole, anywhere = (
            re.compile(pattern.replace("$", "\\Z"), flags) for flags in (re.ASCII, re.ASCII | re.IGNORECASE)
        )
        for _ in range(10):
            text = "".join(rng.choice("abcAB1.x\n_ä") for _ in range(rng.randint(0, 6)))
            assert narrow.matches(text) == bool(whole.fullmatch(text)), (pattern, text)
            if "[^" not in pattern:  # the standard library also inverts the other case
                assert wide.matches(text) == bool(anywhere.search(text)), (pattern, text)
            matched += narrow.matches(text)
    return matched


def test_patterns_match_what_the_standard_library_matches() -> None:
    assert agrees_with_the_standard_library(1, 1500) > 1000


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 20))
def test_patterns_match_what_the_standard_library_matches_for_long(seed: int) -> None:
    agrees_with_the_standard_library(seed, 20_000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+b", "a" * 100_000),
        ("(a|a)*b", "a" * 100_000),
        ("(.*)*x", "a" * 100_000),
        ("(a?){50}a{50}", "a" * 99),
        ("([a-z]+)*@", "abc" * 30_000),
    ],
)
def test_no_text_takes_long(pattern: str, text: str) -> None:
    started = time.process_time()
    TextPattern(pattern).matches(text)
    TextPattern(pattern, for_deny=True).matches(text)
    assert time.process_time() - started < 2


def test_the_narrow_reading_needs_the_whole_text_and_the_wide_one_a_part_in_any_case() -> None:
    assert TextPattern("drop +table").matches("drop  table")
    assert not TextPattern("drop +table").matches("drop table users")
    assert TextPattern("drop +table", for_deny=True).matches("; DROP TABLE users")
    assert not TextPattern("^drop +table$", for_deny=True).matches("; drop table users")


@pytest.mark.parametrize(
    "pattern", ["AKIA[0-9A-Z]{16}", "-----BEGIN [A-Z ]*PRIVATE KEY-----", "gh[pousr]_[A-Za-z0-9]{36}"]
)
def test_patterns_that_find_keys_in_a_text_compile(pattern: str) -> None:
    assert not TextPattern(pattern, for_deny=True).matches("nothing here " * 1000)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "1 to 500 characters"),
        ("a(?=b)", "look-around"),
        ("(?i)a", "flags are not supported"),
        (r"(a)\1", "`\\1` is not supported"),
        (r"\bword", "`\\b` is not supported"),
        ("a*?", "lazy"),
        ("a**", "repeated repetitions"),
        ("*a", "nothing to repeat"),
        ("(a", "expected `)`"),
        ("a)", "never opened"),
        ("[a", "expected `]`"),
        ("[z-a]", "reversed"),
        ("a{3,2}", "reversed"),
        ("a{x}", "write `\\{` for a brace"),
        ("a^b", "only at the ends"),
        ("^a|b$", "put the alternatives in parentheses"),
        ("a{600}", "needs more than 500 characters"),
        (".*a.{20}b", f"more than {MAX_STATES:,} states"),
        ("(" * 30 + "a" + ")" * 30, "nested more than"),
        ("\\", "expected a character after"),
    ],
)
def test_what_is_not_supported_is_refused_with_the_reason(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError, match=re.escape(problem)):
        TextPattern(pattern)
