"""The time limit that a host gives to one run of code."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from holdfast import GuestLimits, Runtime
from holdfast.core import Error
from holdfast.core.errors import InvalidInput
from holdfast.core.events import RunStarted
from holdfast.guests.python.limits import LimitTracker
from holdfast.guests.python.state import RunProgress
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

SLEEP = "import time\ntime.sleep(1e6)"
ALLOW = FixedPolicy(default="allow")


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    settings = Settings(code=GuestLimits(wall_seconds=10))
    runtime = await Runtime.start(home=tmp_path / "home", settings=settings, servers=())
    yield await runtime.create(policy=ALLOW, needs_model=False)
    await runtime.close()


@pytest.mark.parametrize(
    ("configured", "timeout", "wall", "computing"),
    [
        ({}, 1, 1, 5),
        ({}, 2.5, 2.5, 5),
        ({}, 300, 300, 300),
        ({"wall_seconds": 10}, 60, 10, 10),
        ({"wall_seconds": 600}, 60, 60, 60),
        ({"seconds": 2}, 60, 60, 2),
        ({"seconds": 20}, 10, 10, 20),
    ],
)
def test_a_time_limit_replaces_defaults_and_stays_below_what_is_configured(
    configured: dict[str, float], timeout: float, wall: float, computing: float
) -> None:
    limits = msgspec.structs.replace(GuestLimits(), **configured).with_timeout(timeout)
    assert (limits.wall_seconds, limits.seconds) == (wall, computing)


async def test_a_run_is_recorded_with_its_time_limit_and_bounded_by_the_configuration(
    session: Session,
) -> None:
    for timeout, bound in ((1.5, "1.5"), (60, "10"), (None, "10")):
        outcome = await session.execute(SLEEP, timeout_seconds=timeout)
        assert isinstance(outcome, Error)
        assert f"longer than its {bound} s" in outcome.message
        started = [entry.event for entry in session.recorded if isinstance(entry.event, RunStarted)]
        assert started[-1].timeout_seconds == timeout


@pytest.mark.parametrize("seconds", [0, 0.999, 300.001, float("nan"), float("inf"), -5, "5", True])
async def test_a_time_limit_out_of_range_is_refused_before_anything_is_recorded(
    session: Session, seconds: float
) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 300"):
        await session.execute("1", timeout_seconds=seconds)
    assert session.history() == ()


def test_the_error_names_the_computing_time_that_the_interpreter_kept() -> None:
    tracker = LimitTracker(GuestLimits(seconds=60), RunProgress(), first_limits=GuestLimits(seconds=5))
    assert "longer than 5 s" in str(tracker.out_of_time())
    assert "new session" in str(tracker.out_of_time())
