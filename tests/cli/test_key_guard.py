"""Keys that were meant for something else never approve."""

import random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.approvals.key_guard import QUIET_SECONDS, SETTLE_SECONDS, AccidentGuard
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
