"""How long is waited before a model is asked again, without waiting."""

import pytest

from holdfast.core import FakeClock
from holdfast.models.retry import RetryPolicy


def patient(slept: list[float], *, attempts: int = 9, jitter: float = 1.0) -> RetryPolicy:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return RetryPolicy(10, attempts, sleep=sleep, clock=FakeClock(), jitter=lambda: jitter)


@pytest.mark.parametrize(("retry_after", "is_worth_it"), [(9.9, True), (10.0, False), (11.0, False)])
async def test_a_wait_that_would_outlast_the_limit_is_not_begun(
    retry_after: float, is_worth_it: bool
) -> None:
    slept: list[float] = []
    patience = patient(slept)
    assert await patience.wait(1, since=patience.started(), retry_after=retry_after) is is_worth_it
    assert slept == ([retry_after] if is_worth_it else [])


async def test_waits_double_with_some_chance_in_them_and_attempts_end() -> None:
    slept: list[float] = []
    patience = patient(slept, attempts=4, jitter=0.0)
    since = patience.started()
    worth = [await patience.wait(attempt, since=since, retry_after=None) for attempt in (1, 2, 3, 4)]
    assert worth == [True, True, True, False]
    assert slept == [0.25, 0.5, 1.0]


async def test_what_the_provider_asks_for_is_never_cut_short() -> None:
    slept: list[float] = []
    patience = patient(slept)
    await patience.wait(1, since=patience.started(), retry_after=0.001)
    await patience.wait(1, since=patience.started(), retry_after=5.0)
    assert slept == [0.5, 5.0]
