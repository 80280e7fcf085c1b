"""Python guests: what code may contain, how it is checked, repeated and limited."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import ECHO, KEY
from tests.guests.test_guest_contract import Echo

from holdfast.core import Answer, EscalationId, Failed, Json, JsonObject, Parked, Returned, Tool
from holdfast.core.errors import GuestError, SnapshotRefused
from holdfast.guests import Engine, Guest, GuestLimits, Run, RunRequest, SnapshotSigner, python_engine
from holdfast.guests.python.checker import Checker
from holdfast.guests.python.engine import PythonEngine
from holdfast.guests.python.worker import Worker
from holdfast.guests.python.worker_pool import WorkerPool

ODD = Tool(
    name="odd-server.read-file",
    parameters={
        "type": "object",
        "properties": {
            "class": {"type": "string"},
            "max-lines": {"type": "integer"},
            "path": {"type": "string"},
        },
        "required": ["path"],
    },
)
PLAIN = Tool(name="now", parameters={"properties": {}}, returns={"type": "string"})


@pytest.fixture
def engine(shared_python: PythonEngine) -> Engine:
    return shared_python


@pytest_asyncio.fixture(loop_scope="module")
async def guest(engine: Engine) -> AsyncIterator[Guest]:
    made = engine.guest()
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def own_engine() -> AsyncIterator[Engine]:
    """An engine whose processes are those of one test."""
    made = python_engine(key=KEY)
    yield made
    await made.close()


async def run(guest: Guest, code: str, echo: Echo | None = None, *tools: Tool, **limits: float) -> Run:
    bounds = GuestLimits(**limits)  # type: ignore[arg-type]
    request = RunRequest(code=code, tools=tools or (ECHO,), limits=bounds, seed=7, now_ms=1_767_225_600_000)
    return await guest.run(request, echo or Echo())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("echo.say(text=3)", "Expected `str`, found `Literal[3]`"),
        ("echo.say()", "required parameter `text`"),
        ("echo.say(txt='a')", "`txt` does not match"),
        ("echo.shout('a')", "no attribute `shout`"),
        ("import numpy", "`numpy`, which this sandbox does not have"),
        ("import echo", "is already defined, do not import it"),
        ("print(misspelt)", "Name `misspelt` used when not defined"),
        ("import os\nos.system('ls')", "line 2: Module `os` has no member `system`"),
        ("class A(Exception): pass", "does not yet support class inheritance"),
        ("def f():\n    yield 1", "yield"),
        ("x = 1\ndel x", "'del' statement"),
        ("def f(:", "line 1"),
        ("from __future__ import annotations", "line 1"),
    ],
)
async def test_code_that_cannot_work_is_refused_with_advice(guest: Guest, code: str, expected: str) -> None:
    echo = Echo()
    ended = await run(guest, code, echo)
    assert ended.status == "refused"
    assert expected in ended.error
    assert echo.calls == []


async def test_nothing_runs_if_the_last_line_is_refused(guest: Guest) -> None:
    echo = Echo()
    ended = await run(guest, "echo.say('a')\nprint('b')\nimport numpy", echo)
    assert (ended.status, ended.printed, echo.calls) == ("refused", "", [])
    assert ended.error.startswith("line 3: ")


@pytest.mark.parametrize(
    "code",
    [
        "x: int = 'a'\nx",
        "import re\nre.match('a', 'a').group()",
        "list(map(str, filter(None, [1, 2])))",
        "try:\n    {}['a']\nexcept (KeyError, FileNotFoundError):\n    pass",
        "class A:\n    x = 1\n[getattr(A, 'x'), hasattr(A, 'y')]",
        "# type: ignore\n1",
        "import os\nos.path.join('a', 'b')",
    ],
)
async def test_code_that_python_would_run_is_not_refused_for_its_types(guest: Guest, code: str) -> None:
    assert (await run(guest, code)).status == "ok"


async def test_names_of_earlier_runs_are_known(guest: Guest) -> None:
    await run(guest, "import json\ndef double(n):\n    return n * 2\nfor i in range(3): pass")
    assert (await run(guest, "json.dumps([double(i), i])")).value == "[4, 2]"


async def test_tools_may_change_between_runs(guest: Guest) -> None:
    await run(guest, "x = 1")
    assert (await run(guest, "now() + str(x)", Echo(Returned(value="noon")), PLAIN)).value == "noon1"
    assert (await run(guest, "now()")).status in ("refused", "error")


async def test_a_tool_can_be_kept_in_a_variable(guest: Guest) -> None:
    assert (await run(guest, "say = echo.say\nsay('a') + say(text='b')")).value == "ab"
    assert (await run(guest, "say('c')")).value == "c"


async def test_names_that_are_not_identifiers_are_mapped_both_ways(guest: Guest) -> None:
    echo = Echo(Returned(value=1))
    assert (await run(guest, "odd_server.read_file('p', class_='c', max_lines=3)", echo, ODD)).value == 1
    assert echo.calls == [("odd-server.read-file", {"path": "p", "class": "c", "max-lines": 3})]


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        ("FileNotFoundError", "FileNotFoundError"),
        ("ValueError", "ValueError"),
        ("ToolTimeout", "TimeoutError"),
        ("PathRefused", "PermissionError"),
        ("SystemExit", "RuntimeError"),
        ("KeyboardInterrupt", "RuntimeError"),
        ("ToolFailed", "RuntimeError"),
    ],
)
async def test_a_failed_call_raises_the_matching_exception(guest: Guest, error: str, seen: str) -> None:
    code = "try:\n    echo.say('a')\nexcept Exception as problem:\n    answer = [type(problem).__name__, str(problem)]\nanswer"
    assert (await run(guest, code, Echo(Failed(error=error, reason="why")))).value == [seen, "why"]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("(1, {2, 3}, b'x', None, 1.5)", [1, [2, 3], "eA==", None, 1.5]),
        ("{1: 'a'}", {"1": "a"}),
        ("10 ** 30", "1" + "0" * 30),
        ("float('inf')", "inf"),
        ("import datetime\ndatetime.date(2026, 1, 2)", "datetime.date(2026, 1, 2)"),
    ],
)
async def test_a_value_is_plain_data_or_its_text(guest: Guest, code: str, value: Json) -> None:
    assert (await run(guest, code)).value == value


@pytest.mark.parametrize(
    "code", ["list(range(100000))", "L = []\nfor i in range(200): L = [L]\nL", "'x' * 300000"]
)
async def test_a_value_that_is_too_large_is_described(guest: Guest, code: str) -> None:
    ended = await run(guest, code)
    assert ended.status == "ok"
    assert str(ended.value).startswith("<a value ")


@pytest.mark.parametrize("argument", ["{1, 2}", "b'x'", "{1: 2}", "float('nan')", "10 ** 40", "print"])
async def test_only_plain_data_can_be_an_argument(guest: Guest, argument: str) -> None:
    echo = Echo()
    ended = await run(guest, f"box = {argument}\necho.say(box)", echo)
    assert "TypeError" in ended.error or ended.status == "refused"
    assert echo.calls == []


async def test_the_arguments_of_a_call_have_a_maximum_size(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.guests.python.host_calls._MAX_ARGUMENT_BYTES", 8 << 20)
    echo = Echo()
    ended = await run(guest, "echo.say('x' * (9 << 20))", echo)
    assert ended.error.splitlines()[-1].startswith("ValueError: the arguments of echo.say have ")
    assert echo.calls == []


async def test_a_second_run_of_the_same_code_behaves_the_same(engine: Engine) -> None:
    code = """
import datetime, os, random, time
time.sleep(0.001)
[time.time(), time.monotonic(), str(datetime.datetime.now()), str(datetime.date.today()), random.random(),
 random.Random().random(), os.urandom(4).hex(), os.environ.get('PATH'), os.getenv('HOME', 'none'), dict(os.environ)]
"""
    first, second = [await run(engine.guest(), code) for _ in range(2)]
    assert first.error == ""
    assert first.value == second.value
    assert isinstance(first.value, list)
    assert first.value[0] == 1_767_225_600.001
    assert first.value[2] == "2026-01-01 00:00:00.001000"
    assert first.value[-3:] == [None, "none", {}]


async def test_memory_is_limited_and_the_guest_still_works(guest: Guest) -> None:
    await run(guest, "x = 1", memory_bytes=32 << 20)
    ended = await run(guest, "y = 'a' * (64 << 20)", memory_bytes=32 << 20)
    assert ended.status == "limit"
    assert "32 MB" in ended.error
    assert (await run(guest, "x", memory_bytes=32 << 20)).value == 1


async def test_a_limit_cannot_be_caught(guest: Guest) -> None:
    code = "try:\n    while True: pass\nexcept BaseException:\n    pass\nfinally:\n    print('still here')"
    ended = await run(guest, code, seconds=0.1)
    assert (ended.status, ended.printed) == ("limit", "")


async def test_a_sleep_beyond_the_limit_ends_the_run_at_once(guest: Guest) -> None:
    ended = await run(guest, "import time\ntime.sleep(1000)", wall_seconds=5)
    assert ended.status == "limit"
    assert "sleep" in ended.error


async def test_reading_the_clock_forever_is_limited_by_wall_time(guest: Guest) -> None:
    ended = await run(guest, "import time\nwhile True: time.time()", seconds=30, wall_seconds=0.3)
    assert ended.status == "limit"
    assert "0.3 s" in ended.error


async def test_a_later_run_may_have_less_time_than_the_first(guest: Guest) -> None:
    await run(guest, "x = 1", seconds=20)
    ended = await run(guest, "while True: pass", seconds=0.1)
    assert ended.status == "limit"
    assert "0.1" in ended.error


async def test_waiting_for_a_call_is_not_counted(guest: Guest) -> None:
    async def slow(_operation: str, _arguments: JsonObject) -> Answer:
        await asyncio.sleep(1.2)
        return Returned(value="late")

    request = RunRequest(code="echo.say('a')", tools=(ECHO,), limits=GuestLimits(seconds=1, wall_seconds=1))
    assert (await guest.run(request, slow)).value == "late"


async def test_a_worker_that_dies_loses_the_run_and_keeps_the_variables(guest: Guest) -> None:
    await run(guest, "x = 1")

    async def kill(_operation: str, _arguments: JsonObject) -> Answer:
        for pid in worker_pids():
            os.kill(pid, signal.SIGKILL)
        return Returned(value="unused")

    request = RunRequest(code="x = 2\necho.say('a')", tools=(ECHO,))
    ended = await guest.run(request, kill)
    assert ended.status == "lost"
    assert (await run(guest, "x")).value == 1


async def test_an_idle_worker_that_dies_is_replaced(guest: Guest) -> None:
    await run(guest, "x = 1")
    for pid in worker_pids():
        os.kill(pid, signal.SIGKILL)
    ended = await run(guest, "x + 1")
    assert (ended.status, ended.value) == ("ok", 2)


async def test_cancelling_code_that_spins_ends_its_process(own_engine: Engine) -> None:
    others = set(worker_pids())
    guest, spins = own_engine.guest(), asyncio.Event()
    await run(guest, "x = 1")
    before = set(worker_pids()) - others

    async def answer(_operation: str, _arguments: JsonObject) -> Answer:
        asyncio.get_running_loop().call_later(0.05, spins.set)
        return Returned(value="go")

    request = RunRequest(code="x = 2\necho.say('a')\nwhile True: pass", tools=(ECHO,))
    task = asyncio.create_task(guest.run(request, answer))
    await spins.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while not before - set(worker_pids()):  # noqa: ASYNC110 - the kernel ends it without an event
        await asyncio.sleep(0.01)
    assert (await run(guest, "x")).value == 1


async def test_an_engine_keeps_few_workers_and_all_variables() -> None:
    others = set(worker_pids())
    engine = python_engine(key=KEY, max_workers=3)
    guests = [engine.guest() for _ in range(12)]
    await asyncio.gather(*(run(guest, f"x = {number}") for number, guest in enumerate(guests)))
    assert len(set(worker_pids()) - others) <= 3 + 4
    values = await asyncio.gather(*(run(guest, "x") for guest in guests))
    assert [ended.value for ended in values] == list(range(12))
    await engine.close()
    assert set(worker_pids()) - others == set()


async def test_a_parked_run_holds_no_worker() -> None:
    engine = python_engine(key=KEY, max_workers=1)
    waits = Parked(escalation=EscalationId("e-1"))
    parked = [await run(engine.guest(), "echo.say('a')", Echo(waits)) for _ in range(5)]
    assert {ended.status for ended in parked} == {"parked"}
    assert (await run(engine.guest(), "1 + 1")).value == 2
    await engine.close()


async def test_a_thousand_calls_are_answered_in_order(guest: Guest) -> None:
    echo = Echo()
    ended = await run(guest, "[echo.say(str(i)) for i in range(1000)] == [str(i) for i in range(1000)]", echo)
    assert ended.value is True
    assert len(echo.calls) == 1000


@pytest.mark.soak
async def test_ten_thousand_calls_are_made_if_they_are_allowed(guest: Guest) -> None:
    ended = await run(
        guest, "sum(len(echo.say('a')) for i in range(10000))", seconds=60, wall_seconds=60, calls=10_000
    )
    assert ended.value == 10_000


async def test_a_snapshot_of_another_key_or_version_is_refused(guest: Guest) -> None:
    await run(guest, "x = 1")
    state = await guest.snapshot()
    other = python_engine(key=b"another key, just as long as ours")
    with pytest.raises(SnapshotRefused, match="not made here"):
        await other.guest().restore(state)
    with pytest.raises(SnapshotRefused, match=r"belongs to 'python/0\.1 state'"):
        await guest.restore(SnapshotSigner(KEY).sign("python/0.1 state", b"x"))


async def test_a_long_error_is_shortened(guest: Guest) -> None:
    ended = await run(guest, "raise ValueError('x' * 10**7)")
    assert ended.status == "error"
    assert len(ended.error) < 20_000


@pytest.mark.parametrize("value", ["\ud800", "x" * (257 << 20)], ids=["surrogate", "huge"])
async def test_an_answer_that_python_cannot_take_is_an_error_in_the_guest(guest: Guest, value: str) -> None:
    ended = await run(guest, "echo.say('a')", Echo(Returned(value=value)))
    assert ended.error.splitlines()[-1].startswith("ValueError: the result ")
    assert (await run(guest, "1 + 1")).value == 2


def test_importing_guests_loads_no_engine() -> None:
    code = "import sys, holdfast.guests; print([name for name in ('pydantic_monty', 'wasmtime') if name in sys.modules])"
    expected = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert expected.stdout.strip() == "[]"


async def test_a_closed_engine_runs_nothing() -> None:
    engine = python_engine(key=KEY)
    await engine.close()
    with pytest.raises(GuestError):
        await run(engine.guest(), "1")


def worker_pids() -> list[int]:
    """The worker processes that are children of this test process."""
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text().rpartition(") ")[2].split()
                name = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if int(status[1]) == os.getpid() and status[0] != "Z" and b"monty" in name:
                pids.append(int(folder.name))
    return pids


async def test_a_slow_check_does_not_delay_sessions_with_the_same_tools(
    engine: Engine,
) -> None:
    slow = "if len(''): pass\n" + "".join(f"elif len('') == {number}: pass\n" for number in range(5000))
    assert (await run(engine.guest(), "1")).value == 1
    checked = asyncio.create_task(run(engine.guest(), slow))
    for _ in range(5):
        await asyncio.sleep(0)
    for _ in range(5):
        assert (await run(engine.guest(), "6 * 7")).value == 42
    assert not checked.done()
    checked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checked


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("x = " + "[" * 150 + "]" * 150, id="too much time"),
        pytest.param(
            "x = len('')\n" + "".join(f"if x == {i}: x = {i}\n" for i in range(2000)), id="too much memory"
        ),
    ],
)
async def test_code_that_is_too_complex_to_check_is_refused_after_one_check(code: str) -> None:
    workers = WorkerPool(max_workers=1, message_bytes=1 << 20)
    opened: list[Worker] = []

    async def open_worker(limits: GuestLimits, stubs: str) -> Worker:
        opened.append(await workers._open_checker(limits, stubs))
        return opened[-1]

    checker = Checker(open_worker)
    rejection = await checker.check(code, (), frozenset())
    assert rejection is not None
    assert "could not be checked within the limits on time and memory" in rejection.text
    assert len(opened) == 1
    assert await checker.check("1 + 1", (), frozenset()) is None, "the next code is checked"
    await checker.close()
    await workers.close()


SHARED = "x = 'x' * 10**6\nclass Box:\n    def __init__(self): self.all = [x] * 3000\n"


@pytest.mark.parametrize(
    "value", ["[x] * 3000", "{x + str(i): x for i in range(60)}", "{(x,) * 3000}", "{(x,) * 3000: 1}", "Box()", "[x.encode()] * 3000"]
)  # fmt: skip
async def test_text_that_a_value_repeats_is_not_copied(guest: Guest, value: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = await run(guest, SHARED + value)
    assert "too large to show: more than 262144 characters" in str(ended.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000, "kilobytes"


@pytest.mark.parametrize(
    "call", ["echo.say([x] * 3000)", "echo.say('', **{'k' + str(i): x for i in range(3000)})"]
)
async def test_text_that_arguments_repeat_is_not_copied(guest: Guest, call: str) -> None:
    echo = Echo()
    ended = await run(
        guest, f"exec({SHARED + call!r})", echo
    )  # as text, because the check would refuse its types
    assert "must be plain data: more than 201326592 characters" in ended.error
    assert echo.calls == []


async def test_the_default_of_an_environment_variable_must_be_text(guest: Guest) -> None:
    ended = await run(guest, SHARED + "import os\nos.getenv('A', [x] * 3000)")
    assert "the default of os.getenv must be a string or None here" in ended.error
    assert (await run(guest, "os.getenv('A', 'b'), os.getenv('A')")).value == ["b", None]
