"""How long a retry waits, and when there is no retry."""

import pytest

from holdfast.core import FakeClock
from holdfast.models.retry import RetryPolicy


def policy(waits: list[float], *, max_attempts: int = 9, jitter: float = 1.0) -> RetryPolicy:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return RetryPolicy(10, max_attempts, sleep=sleep, clock=FakeClock(), jitter=lambda: jitter)


@pytest.mark.parametrize(("retry_after", "is_retried"), [(9.9, True), (10.0, False), (11.0, False)])
async def test_a_wait_beyond_the_time_limit_is_not_started(retry_after: float, is_retried: bool) -> None:
    waits: list[float] = []
    retry = policy(waits)
    assert await wait(retry, 1, started=retry.start(), retry_after_seconds=retry_after) is is_retried
    assert waits == ([retry_after] if is_retried else [])


async def wait(
    retry: RetryPolicy, attempt: int, *, started: float, retry_after_seconds: float | None
) -> bool:
    """Wait as a model does after a failed attempt; False if there must not be another."""
    delay = retry.delay(attempt, started=started, retry_after_seconds=retry_after_seconds)
    if delay is not None:
        await retry.sleep(delay)
    return delay is not None


async def test_waits_double_with_jitter_until_the_last_attempt() -> None:
    waits: list[float] = []
    retry = policy(waits, max_attempts=4, jitter=0.0)
    started = retry.start()
    retried = [
        await wait(retry, attempt, started=started, retry_after_seconds=None) for attempt in (1, 2, 3, 4)
    ]
    assert retried == [True, True, True, False]
    assert waits == [0.25, 0.5, 1.0]


async def test_a_wait_is_never_shorter_than_the_provider_requests() -> None:
    waits: list[float] = []
    retry = policy(waits)
    await wait(retry, 1, started=retry.start(), retry_after_seconds=0.001)
    await wait(retry, 1, started=retry.start(), retry_after_seconds=5.0)
    assert waits == [0.5, 5.0]
