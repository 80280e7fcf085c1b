"""Diffs of texts of any size: right for small ones, the changed lines alone for large ones, and always complete."""

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.world.staging import line_diff
from holdfast.world.staging.line_diff import unified_diff

NAMES = ("a/f", "b/f")
LARGE = 60_000
TEXTS = st.lists(
    st.sampled_from(["a\n", "b\n", "c\n", "\n", "ü\n", "x\fy\n", "z\r\n", "end"]), max_size=60
).map("".join)


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def apply(old: str, diff: str) -> str:
    """What the diff makes of the old text. Every line and every number in the diff has to be right."""
    before, after, patch = lines_of(old), list[str](), lines_of(diff)[2:]
    at = 0
    while patch:
        header = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", patch.pop(0))
        assert header is not None
        start, count, new_start, new_count = (1 if part is None else int(part) for part in header.groups())
        end = start - 1 + count if count else start
        after += before[at : end - count]
        at = end - count
        assert len(after) == (new_start - 1 if new_count else new_start)
        stop = len(after) + new_count
        while (at < end or len(after) < stop) and patch:
            kind, line = patch[0][0], patch.pop(0)[1:]
            if patch and patch[0] == "\\ No newline at end of file\n":
                line = line.removesuffix("\n")
                patch.pop(0)
            if kind != "+":
                assert before[at] == line
                at += 1
            if kind != "-":
                after.append(line)
        assert (at, len(after)) == (end, stop)
    return "".join(after + before[at:])


def diff_of(old: str, new: str) -> str:
    diff = unified_diff(old, new, NAMES)
    assert diff is not None
    return diff


def changed(diff: str) -> list[str]:
    return [line for line in lines_of(diff)[2:] if line[0] in "+-"]


@settings(deadline=None)
@given(text=TEXTS)
def test_the_diff_of_a_new_or_deleted_file_is_the_one_that_a_comparison_gives(text: str) -> None:
    for old, new in ((text, ""), ("", text)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(line_diff, "_PIECE_CHARACTERS", 2)
            short = diff_of(old, new)
            patch.setattr(line_diff, "_one_sided_diff", lambda *_: pytest.fail("not compared"))
            patch.setattr(line_diff, "_is_one_sided", lambda *_: False)
            assert diff_of(old, new) == short


@settings(deadline=None)
@given(old=TEXTS, new=TEXTS)
@pytest.mark.parametrize("bound", [0, 3, 10, 3000])
def test_a_diff_makes_the_new_text_of_the_old_one(bound: int, old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_diff, "MAX_COMPARED_LINES", bound)
        patch.setattr(line_diff, "MAX_COMPARISONS", 20 * bound)
        diff = diff_of(old, new)
    assert apply(old, diff) == new
    assert bool(diff) == (old != new)


def numbered() -> list[str]:
    return [f"{number},{number * 7 % 1000}\n" for number in range(LARGE)]


def few_kinds() -> list[str]:
    chance = random.Random(7)
    return [f"{chance.randrange(10)}\n" for _ in range(LARGE)]


def all_equal() -> list[str]:
    return ["same\n"] * LARGE


@pytest.mark.parametrize("make", [numbered, few_kinds, all_equal])
def test_the_diff_of_a_long_file_has_the_changed_lines_alone(make: object) -> None:
    assert callable(make)
    old = make()
    new = [*old[:1], "first\n", *old[2:30_000], "inserted\n", *old[30_000:59_990], "last\n", *old[59_991:]]
    diff = diff_of("".join(old), "".join(new))
    assert apply("".join(old), diff) == "".join(new)
    assert sorted(changed(diff)) == sorted(
        ["+first\n", "+inserted\n", "+last\n", f"-{old[1]}", f"-{old[59_990]}"]
    )
    assert len(lines_of(diff)) < 40


def test_long_texts_with_nothing_in_common_are_removed_and_added() -> None:
    old, new = "".join(few_kinds()), "".join(reversed(few_kinds()))
    started = time.process_time()
    diff = diff_of(old, new)
    assert time.process_time() - started < 30  # comparing all lines with all others takes hours
    assert apply(old, diff) == new


@pytest.mark.parametrize("limit", ["MAX_LINES", "MAX_DIFFERENT_LINES"])
def test_texts_that_are_too_large_to_compare_have_no_diff(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    old, new = "".join(numbered()[:100]), "".join(numbered()[50:150])
    assert unified_diff(old, new, NAMES)
    monkeypatch.setattr(line_diff, limit, 149)
    assert unified_diff(old, new, NAMES) is None


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_text_with_a_line_that_nobody_can_read_has_no_diff(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(line_diff, "MAX_LINE_CHARACTERS", 10)
    longest = f"a\n{'b' * 9}\n{'c' * 10}{end}"
    assert unified_diff("", longest, NAMES) is not None
    for text in (f"a\n{'b' * 11}\nc\n{end}", f"a\n{'b' * 11}{end}", "b" * 11):
        assert unified_diff("", text, NAMES) is None
        assert unified_diff(text, "a\n", NAMES) is None
