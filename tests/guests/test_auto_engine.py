"""Code that the fast engine does not support runs in the complete one, and nothing runs twice."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import ECHO, KEY
from tests.guests.test_guest_contract import Echo

from holdfast.core import EscalationId, Parked, Returned
from holdfast.core.errors import SnapshotRefused
from holdfast.guests import AutoEngine, Guest, Run, RunRequest
from holdfast.guests.python.engine import PythonEngine
from holdfast.guests.wasi import WorkerPool, wasi_engine

# The first test of the WASI engine on a machine builds its component.
pytestmark = pytest.mark.timeout(300)
GENERATOR = "def count():\n    yield from range(3)\nlist(count())"


@pytest_asyncio.fixture(loop_scope="module")
async def engine(
    cache: Path, workspace: Path, workers: WorkerPool, shared_python: PythonEngine
) -> AsyncIterator[AutoEngine]:
    wasi = wasi_engine(key=KEY, cache=cache, workspace=workspace, workers=workers)
    yield AutoEngine(python=shared_python, wasi=wasi)
    await wasi.close()


@pytest.fixture
def guest(engine: AutoEngine) -> Guest:
    return engine.guest()


async def run(guest: Guest, code: str, echo: Echo | None = None) -> Run:
    return await guest.run(RunRequest(code=code, tools=(ECHO,)), echo or Echo())


async def test_supported_code_runs_in_the_fast_engine(guest: Guest) -> None:
    ended = await run(guest, "1 + 1")
    assert (ended.value, ended.engine) == (2, "python")


async def test_unsupported_code_runs_in_the_complete_engine_and_says_why(guest: Guest) -> None:
    ended = await run(guest, GENERATOR)
    assert (ended.value, ended.engine) == ([0, 1, 2], "wasi")
    assert "yield" in ended.engine_reason


async def test_a_module_that_is_missing_in_one_is_found_in_the_other(guest: Guest) -> None:
    ended = await run(guest, "import statistics\nstatistics.mean([1, 3])")
    assert (ended.value, ended.engine) == (2, "wasi")


async def test_calls_before_the_unsupported_line_are_made_once(guest: Guest) -> None:
    echo = Echo()
    ended = await run(guest, f"echo.say(text='a')\n{GENERATOR}", echo)
    assert ended.engine == "wasi"
    assert echo.calls == [("echo.say", {"text": "a"})]


async def test_plain_data_is_carried_over_and_stays(guest: Guest) -> None:
    await run(guest, "x = {'a': [1, None]}\nname = 'n'\ndef f():\n    return 1\nodd = {1, 2}")
    assert (await run(guest, f"{GENERATOR}\n[x, name]")).value == [{"a": [1, None]}, "n"]
    ended = await run(guest, "x['a'].append(2)\nx")
    assert (ended.value, ended.engine) == ({"a": [1, None, 2]}, "wasi")


async def test_large_data_is_carried_over_and_what_is_not_is_named(guest: Guest) -> None:
    await run(guest, "small = 7\nrows = [['row', i, '\"'] for i in range(60000)]\nother = 'x' * 1000000")
    await run(
        guest, "import json\nhuge = ['x' * 1000000] * 3\nodd = float('nan')\ndef f():\n    return len(rows)"
    )
    ended = await run(guest, f"{GENERATOR}\n[small, len(rows), rows[-1], len(other)]")
    assert ended.value == [7, 60000, ["row", 59999, '"'], 1000000]
    assert ended.printed == (
        "[this code runs in wasi from now on; define again what was not carried over: f, huge, json, odd]\n"
    )
    assert (await run(guest, "small")).printed == ""


@pytest.mark.parametrize("code", ["print(misspelt)", "echo.say(text=3)", "x = [", "import echo"])
async def test_code_that_is_wrong_goes_back_to_its_author(guest: Guest, code: str) -> None:
    ended = await run(guest, code)
    assert (ended.status, ended.engine) == ("refused", "python")


async def test_an_error_at_run_time_does_not_switch_the_engine(guest: Guest) -> None:
    ended = await run(guest, "raise NotImplementedError('the monty syntax parser does not support this')")
    assert (ended.engine, ended.status) == ("python", "error")


async def test_the_state_remembers_which_engine_it_is_in(engine: AutoEngine, guest: Guest) -> None:
    await run(guest, f"{GENERATOR}\ny = 5")
    other = engine.guest()
    await other.restore(await guest.snapshot())
    ended = await run(other, "y")
    assert (ended.value, ended.engine) == (5, "wasi")
    await other.restore(b"")
    assert (await run(other, "1 + 1")).engine == "python"
    with pytest.raises(SnapshotRefused):
        await other.restore(b"9 anything")


async def test_a_parked_run_resumes_in_the_engine_where_it_started(guest: Guest) -> None:
    waits = Echo(Parked(escalation=EscalationId("e-1")))
    request = RunRequest(code="echo.say(text='a') + '!'", tools=(ECHO,))
    parked = await guest.run(request, waits)
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(value="yes"), request, Echo())
    assert (ended.value, ended.engine) == ("yes!", "python")


async def test_a_run_that_switched_and_waited_still_reports_what_was_omitted_and_why(
    guest: Guest,
) -> None:
    await run(guest, "def f():\n    return 1")
    waits = Echo(Parked(escalation=EscalationId("e-1")))
    request = RunRequest(code=f"{GENERATOR}\nprint(echo.say(text='a'))", tools=(ECHO,))
    parked = await guest.run(request, waits)
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(value="yes"), request, Echo())
    line = "[this code runs in wasi from now on; define again what was not carried over: f]\n"
    assert (parked.printed, ended.printed) == (line, f"{line}yes\n")
    assert (ended.engine, ended.engine_reason) == ("wasi", parked.engine_reason)
    assert (await run(guest, "1")).printed == ""
