"""Each bound of a run of Python has its own words, ends the run, and leaves the variables as they were."""

from pathlib import Path

import pytest
from tests.guests.engines import ECHO, KEY, component_cache
from tests.guests.test_guest_contract import Echo

from holdfast.guests import AutoEngine, GuestLimits, RunRequest, python_engine
from holdfast.guests.wasi import wasi_engine

LIMITS = {
    "time of its own": (GuestLimits(seconds=0.2), "while True: pass", "ran longer than 0.2 s"),
    "wall time": (
        GuestLimits(wall_seconds=0.3, seconds=9),
        "import time\nwhile True: time.time()",
        "took longer than 0.3 s, waiting for calls not counted",
    ),
    "sleep": (GuestLimits(wall_seconds=1), "import time\ntime.sleep(60)", "sleep longer than its 1 s"),
    "steps": (GuestLimits(steps=1000), "while True: pass", "made more than 1000 steps"),
    "memory": (GuestLimits(memory_bytes=32 << 20), "x = 'a' * (64 << 20)", "more than 32 MB of memory"),
    "output": (GuestLimits(output_bytes=1000), "while True: print('flood')", "printed more than 1000 bytes"),
    "suspensions": (GuestLimits(calls=3), "while True: echo.say(text='a')", "more than 3 calls"),
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_each_limit_has_its_own_clear_error(limit: str) -> None:
    limits, code, told = LIMITS[limit]
    engine = python_engine(key=KEY)
    guest = engine.guest()
    await guest.run(RunRequest(code="kept = 1", limits=limits), Echo())
    ended = await guest.run(RunRequest(code=f"kept = 2\n{code}", tools=(ECHO,), limits=limits), Echo())
    assert ended.status == "limit"
    assert told in ended.error
    assert [other for other, (_, _, words) in LIMITS.items() if words in ended.error] == [limit]
    assert (await guest.run(RunRequest(code="kept", limits=limits), Echo())).value == 1
    await engine.close()


@pytest.mark.timeout(900)
async def test_auto_runs_code_whose_steps_one_engine_cannot_count_in_the_other(tmp_path: Path) -> None:
    wasi = wasi_engine(key=KEY, cache=component_cache(), workspace=tmp_path)
    engine = AutoEngine(python=python_engine(key=KEY), wasi=wasi)
    limits = GuestLimits(steps=50_000_000, seconds=60, wall_seconds=60)
    ended = await engine.guest().run(RunRequest(code="eval('1')\nwhile True: pass", limits=limits), Echo())
    await engine.close()
    assert (ended.status, ended.engine, ended.steps) == ("limit", "wasi", 50_000_000)
