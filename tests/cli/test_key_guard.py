"""Keys that were meant for something else never approve."""

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.approvals.key_guard import (
    APPROVING,
    QUIET_SECONDS,
    SETTLE_SECONDS,
    SHOW_AGAIN,
    SLOW_TYPING_SECONDS,
    AccidentGuard,
    KeyInput,
)
from holdfast.cli.approvals.terminal import TICK_SECONDS
from holdfast.cli.approvals.text import lengths
from holdfast.cli.terminal.console import Console
from holdfast.core import FakeClock


def after(clock: FakeClock, seconds: float, guard: AccidentGuard, key: str) -> str | None:
    clock.advance(seconds)
    chosen = guard.chosen()
    guard.press(key)
    return chosen


def test_a_single_deliberate_key_counts() -> None:
    clock = FakeClock()
    guard = AccidentGuard(clock)
    after(clock, 1.0, guard, "1")
    assert guard.chosen() is None, "not before there was silence after it"
    clock.advance(2 * QUIET_SECONDS)
    assert guard.chosen() == "1"
    assert guard.chosen() is None, "and only once"


def test_no_key_counts_in_the_first_moments() -> None:
    clock = FakeClock()
    guard = AccidentGuard(clock)
    after(clock, SETTLE_SECONDS - 0.01, guard, "1")
    clock.advance(5)
    assert guard.chosen() is None


def test_no_key_of_a_burst_counts_neither_the_first_nor_the_last() -> None:
    clock = FakeClock()
    guard = AccidentGuard(clock)
    clock.advance(2)
    chosen = [after(clock, 0.05, guard, key) for key in "1111"]
    clock.advance(5)
    assert [*chosen, guard.chosen()] == [None] * 5


@given(st.lists(st.tuples(st.floats(0, 0.149), st.sampled_from("123456789\r\ny ")), max_size=60))
def test_fast_typing_approves_nothing(keys: list[tuple[float, str]]) -> None:
    clock = FakeClock()
    guard = AccidentGuard(clock)
    assert all(after(clock, gap, guard, key) is None for gap, key in keys)
    clock.advance(QUIET_SECONDS)
    last = guard.chosen()
    # Only the very first key after a long silence could stand alone, and there was none.
    assert last is None


def test_ten_thousand_random_keys_approve_nothing() -> None:
    chance = random.Random(1)
    clock = FakeClock()
    guard = AccidentGuard(clock)
    for _ in range(10_000):
        assert after(clock, chance.uniform(0.0001, 0.14), guard, chance.choice("123456789\r\n")) is None


ALL_KEYS = [
    *map(chr, range(0x20, 0x7F)),
    "\r",
    "\n",
    "\t",
    "\x7f",
    "\x1b",
    "\x1b[A",
    "\u00e9",
    *"yyyyyaaa1234ts",
]


def approvals_of_random_typing(keystrokes: int, *, slowest: float, seed: int) -> list[str]:
    """Type at a question, with the ticks of its loop in between, and list the keys that would approve.

    The gaps between two keys are random, from those of key repeat to those of a slow typist.
    """
    chance = random.Random(seed)
    clock = FakeClock()
    keys = KeyInput(clock, Console(err=io.StringIO()), is_by_line=False)
    found: list[str] = []
    for _ in range(keystrokes):
        gap = chance.choice([0.0, 0.03, chance.uniform(0, 0.15), chance.uniform(0, slowest)])
        while gap > 0:
            step = min(TICK_SECONDS, gap)
            clock.advance(step)
            gap -= step
            said = keys.answer({*"yanrev?b1234", *APPROVING})
            if said is not None and (said in APPROVING or said.startswith("/approve")):
                found.append(said)
        keys.press(chance.choice(ALL_KEYS))
    return found


@pytest.mark.parametrize("slowest", [0.15, SLOW_TYPING_SECONDS - 0.01])
def test_5_000_random_keystrokes_fast_or_slow_approve_nothing(slowest: float) -> None:
    assert approvals_of_random_typing(5_000, slowest=slowest, seed=7) == []


def test_a_command_that_arrived_too_fast_shows_the_question_again() -> None:
    clock = FakeClock()
    keys = KeyInput(clock, Console(err=io.StringIO()), is_by_line=False)
    clock.advance(2 * SETTLE_SECONDS)
    assert keys.answer({"y"}) is None, "the loop was away"
    for _ in range(20):
        clock.advance(TICK_SECONDS)
        assert keys.answer({"y"}) is None
    for key in "/approve\r":
        keys.press(key)
    assert keys.answer({"y"}) == SHOW_AGAIN


@pytest.mark.soak
@pytest.mark.parametrize("slowest", [0.15, SLOW_TYPING_SECONDS - 0.01])
def test_100_000_random_keystrokes_fast_or_slow_approve_nothing(slowest: float) -> None:
    assert approvals_of_random_typing(100_000, slowest=slowest, seed=8) == []


def test_the_random_typing_would_find_a_guard_that_accepts_slower_typing() -> None:
    assert approvals_of_random_typing(5_000, slowest=3.0, seed=7) != []


def test_every_key_that_approves_needs_the_long_pause() -> None:
    assert frozenset("y") | {key for key, _ in lengths()} - {"n"} == APPROVING, "n asks how many times"
    clock = FakeClock()
    guard = AccidentGuard(clock)
    after(clock, 1.0, guard, "y")
    clock.advance(SLOW_TYPING_SECONDS - 0.01)
    assert guard.chosen() is None
    clock.advance(0.02)
    assert guard.chosen() == "y"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["/approve"], "/approve"),
        (["/status"], "/status"),
        (["see", "/approve", "more"], None),
        (["see", "/approve"], None),
        (["/approve", "y"], None),
    ],
)
def test_in_plain_mode_no_line_of_a_paste_is_an_answer(lines: list[str], expected: str | None) -> None:
    clock = FakeClock()
    keys = KeyInput(clock, Console(err=io.StringIO()), is_by_line=True)
    pauses = [SETTLE_SECONDS + TICK_SECONDS, *(0.0 for _ in lines[1:]), 2 * SLOW_TYPING_SECONDS]
    said = []
    for pause, line in zip(pauses, [*lines, None], strict=True):
        for _ in range(round(pause / TICK_SECONDS)):
            clock.advance(TICK_SECONDS)
            said.append(keys.answer({*"yanr"}))
        if line is not None:
            keys.press(line)
    assert next(filter(None, said), None) == expected


def test_a_key_that_a_busy_machine_missed_is_not_taken_and_the_person_hears_why() -> None:
    clock, shown = FakeClock(), io.StringIO()
    keys = KeyInput(clock, Console(err=shown), is_by_line=False)
    clock.advance(1)
    keys.press("y")
    clock.advance(1)
    assert keys.answer({"y"}) is None
    assert "press the key again" in shown.getvalue()
