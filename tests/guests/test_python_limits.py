"""Each limit of a Python run has its own error, ends the run, and leaves the variables as they were."""

import platform
from pathlib import Path

import msgspec
import pytest
from tests.guests.engines import ECHO, KEY, component_cache
from tests.guests.test_guest_contract import Echo

from holdfast.guests import AutoEngine, GuestLimits, RunRequest, SnapshotSigner, python_engine
from holdfast.guests.python.engine import PythonEngine
from holdfast.guests.python.state import decode_state, encode_record
from holdfast.guests.wasi import WorkerPool, wasi_engine

LIMITS = {
    "computing time": (GuestLimits(seconds=0.2), "while True: pass", "ran longer than 0.2 s"),
    "wall time": (
        GuestLimits(wall_seconds=0.3, seconds=9),
        "import time\nwhile True: time.time()",
        "took longer than 0.3 s, waiting for calls not counted",
    ),
    "sleep": (GuestLimits(wall_seconds=1), "import time\ntime.sleep(60)", "sleep longer than its 1 s"),
    "memory": (GuestLimits(memory_bytes=32 << 20), "x = 'a' * (64 << 20)", "more than 32 MB of memory"),
    "output": (
        GuestLimits(output_bytes=1000, seconds=0.3),
        "while True: print('flood')",
        "printed more than 1000 bytes",
    ),
    "calls": (GuestLimits(calls=3), "while True: echo.say(text='a')", "more than 3 calls"),
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_each_limit_has_its_own_clear_error(limit: str, shared_python: PythonEngine) -> None:
    limits, code, expected = LIMITS[limit]
    guest = shared_python.guest()
    await guest.run(RunRequest(code="kept = 1", limits=limits), Echo())
    ended = await guest.run(RunRequest(code=f"kept = 2\n{code}", tools=(ECHO,), limits=limits), Echo())
    assert ended.status == "limit"
    assert expected in ended.error
    assert [other for other, (_, _, words) in LIMITS.items() if words in ended.error] == [limit]
    assert (await guest.run(RunRequest(code="kept", limits=limits), Echo())).value == 1
    await guest.close()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="nothing limits a message on other processors")
async def test_a_run_whose_variables_are_too_large_to_keep_is_complete_and_says_so() -> None:
    engine = python_engine(key=KEY, max_workers=1, value_bytes=1 << 20)
    guest, echo = engine.guest(), Echo()
    await guest.run(RunRequest(code="kept = 1"), echo)
    code = "kept = 2\nprint('before')\necho.say(text='a')\nlarge = 'x' * (12 << 20)\nlen(large)"
    ended = await guest.run(RunRequest(code=code, tools=(ECHO,)), echo)
    assert (ended.status, ended.value, len(echo.calls)) == ("ok", 12 << 20, 1)
    assert ended.printed.startswith("before\n[The variables are as they were before the run: they take more")
    assert (await guest.run(RunRequest(code="kept"), echo)).value == 1
    failed = await guest.run(RunRequest(code="large = 'x' * (12 << 20)\n1 / 0"), echo)
    assert (failed.status, "ZeroDivisionError" in failed.error) == ("error", True)
    await guest.close()
    await engine.close()


async def test_a_step_limit_is_refused_before_anything_runs(shared_python: PythonEngine) -> None:
    guest, echo = shared_python.guest(), Echo()
    await guest.run(RunRequest(code="kept = 1"), echo)
    request = RunRequest(code="kept = 2\necho.say(text='a')", tools=(ECHO,), limits=GuestLimits(steps=10**9))
    ended = await guest.run(request, echo)
    assert (ended.status, ended.is_unsupported, ended.steps) == ("refused", True, 0)
    assert "cannot count steps" in ended.error
    assert "`seconds`" in ended.error
    assert echo.calls == []
    assert (await guest.run(RunRequest(code="kept"), echo)).value == 1
    await guest.close()


async def test_code_that_counted_its_steps_in_version_0_1_runs_without_a_limit(
    shared_python: PythonEngine,
) -> None:
    counts = "def f(n):\n    __step_next__(__step_left__,0)or __step_stop__(); return n * 2"
    code = f"__step_next__, __step_iter__, __step_range__ = next, iter, range\n__step_left__ = iter([])\n{counts}"
    first, second = shared_python.guest(), shared_python.guest()
    await first.run(RunRequest(code=f"__step_stop__ = None\n{code}"), Echo())
    signer, tag = SnapshotSigner(KEY), f"python/{shared_python.capabilities.version} state"
    state = decode_state(signer.verify(tag, await first.snapshot()))
    await second.restore(signer.sign(tag, encode_record(msgspec.structs.replace(state, counts_steps=True))))
    for _ in range(2):
        assert (await second.run(RunRequest(code="f(21)"), Echo())).value == 42
    for guest in (first, second):
        await guest.close()


@pytest.mark.timeout(900)
async def test_auto_runs_code_under_a_step_limit_in_wasi(
    workspace: Path, workers: WorkerPool, shared_python: PythonEngine
) -> None:
    wasi = wasi_engine(key=KEY, cache=component_cache(), workspace=workspace, workers=workers)
    guest = AutoEngine(python=shared_python, wasi=wasi).guest()
    limits = GuestLimits(steps=50_000_000, seconds=60, wall_seconds=60)
    ended = await guest.run(RunRequest(code="while True: pass", limits=limits), Echo())
    assert (ended.status, ended.engine, ended.steps) == ("limit", "wasi", 50_000_000)
    assert "cannot count steps" in ended.engine_reason
    await wasi.close()
