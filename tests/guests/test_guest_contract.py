"""The contract that every engine keeps, including the scripted one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import ECHO, ENGINES, Candidate, Programs

from holdfast.core import Answer, EscalationId, JsonObject, Parked, Refused, Returned
from holdfast.core.errors import SnapshotRefused
from holdfast.guests import Engine, Guest, GuestLimits, OnCall, Run, RunRequest

# The first test of the WASI engine on a machine builds its component.
pytestmark = pytest.mark.timeout(300)
LIMITS = GuestLimits(seconds=2, wall_seconds=5)
WAITS = Parked(escalation=EscalationId("e-1"))


class Echo:
    """Records calls and answers them with `answers`, then with their own text."""

    def __init__(self, *answers: Answer) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self._answers = list(answers)

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        self.calls.append((operation, arguments))
        return self._answers.pop(0) if self._answers else Returned(value=arguments["text"])


@pytest.fixture(params=ENGINES, scope="module")
def candidate(request: pytest.FixtureRequest) -> Candidate:
    return ENGINES[request.param]


@pytest.fixture
def programs(candidate: Candidate) -> Programs:
    return candidate.programs


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(candidate: Candidate, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    made = candidate.make(tmp_path_factory.mktemp("engine"))
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def guest(engine: Engine) -> AsyncIterator[Guest]:
    made = engine.guest()
    yield made
    await made.close()


def request_for(code: str, limits: GuestLimits = LIMITS) -> RunRequest:
    return RunRequest(code=code, tools=(ECHO,), limits=limits)


async def run(guest: Guest, code: str, on_call: OnCall | None = None, limits: GuestLimits = LIMITS) -> Run:
    return await guest.run(request_for(code, limits), on_call or Echo())


async def test_a_run_ends_with_its_value(guest: Guest, programs: Programs) -> None:
    ended = await run(guest, programs.two)
    assert (ended.status, ended.value, ended.error) == ("ok", 2, "")


async def test_printed_text_is_returned(guest: Guest, programs: Programs) -> None:
    assert (await run(guest, programs.prints)).printed == "hello\n"


async def test_variables_last_from_run_to_run(guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    assert (await run(guest, programs.reads)).value == 41


async def test_guests_of_one_engine_share_nothing(engine: Engine, guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    other = engine.guest()
    assert (await run(other, programs.reads)).status in ("error", "refused")
    await other.close()


async def test_a_call_reaches_the_host_and_its_value_the_guest(guest: Guest, programs: Programs) -> None:
    echo = Echo(Returned(value="from the host"))
    ended = await run(guest, programs.says, echo)
    assert ended.value == "from the host"
    assert echo.calls == [("echo.say", {"text": "first"})]


async def test_a_refusal_can_be_caught_and_has_its_reason(guest: Guest, programs: Programs) -> None:
    ended = await run(guest, programs.catches, Echo(Refused(reason="not today", rule="r")))
    assert ended.status == "ok"
    assert "not today" in str(ended.value)


async def test_a_refusal_that_is_not_caught_ends_the_run(guest: Guest, programs: Programs) -> None:
    ended = await run(guest, programs.says, Echo(Refused(reason="not today", rule="r")))
    assert ended.status == "error"
    assert "not today" in ended.error


async def test_an_error_of_the_code_is_reported(guest: Guest, programs: Programs) -> None:
    ended = await run(guest, programs.fails)
    assert ended.status == "error"
    assert "boom" in ended.error


async def test_invalid_code_is_refused_before_anything_runs(guest: Guest, programs: Programs) -> None:
    echo = Echo()
    ended = await run(guest, programs.unreadable, echo)
    assert ended.status == "refused"
    assert ended.error
    assert echo.calls == []


async def test_a_guest_works_after_an_error_and_a_refusal(guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    await run(guest, programs.fails)
    await run(guest, programs.unreadable)
    assert (await run(guest, programs.reads)).value == 41


async def test_code_that_never_ends_is_stopped_and_variables_stay(guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    ended = await run(guest, programs.spins, limits=GuestLimits(seconds=0.2, wall_seconds=5))
    assert ended.status == "limit"
    assert "0.2" in ended.error
    assert (await run(guest, programs.reads)).value == 41


async def test_the_number_of_calls_is_limited_exactly(guest: Guest, programs: Programs) -> None:
    echo = Echo()
    assert (await run(guest, programs.says_twice, echo, GuestLimits(calls=2))).status == "ok"
    stopped = await run(guest, programs.says_twice, echo, GuestLimits(calls=1))
    assert stopped.status == "limit"
    assert len(echo.calls) == 3


async def test_output_is_limited_and_what_fits_is_kept(guest: Guest, programs: Programs) -> None:
    ended = await run(guest, programs.floods, limits=GuestLimits(output_bytes=1000))
    assert ended.status == "limit"
    assert ended.printed == "x" * 1000
    assert "1000" in ended.error


async def test_cancelling_stops_the_code_and_the_guest_still_works(guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    waits, released = asyncio.Event(), asyncio.Event()

    async def on_call(_operation: str, _arguments: JsonObject) -> Answer:
        waits.set()
        await released.wait()
        raise AssertionError("the run was cancelled")

    task = asyncio.create_task(run(guest, programs.says, on_call))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run(guest, programs.reads)).value == 41


async def test_another_guest_can_load_the_state(engine: Engine, guest: Guest, programs: Programs) -> None:
    assert await guest.snapshot() == b""
    await run(guest, programs.sets)
    state = await guest.snapshot()
    other = engine.guest()
    await other.restore(state)
    assert (await run(other, programs.reads)).value == 41
    await other.restore(b"")
    assert (await run(other, programs.reads)).status in ("error", "refused")
    await other.close()


async def test_a_state_that_was_changed_is_refused(guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    state = await guest.snapshot()
    with pytest.raises(SnapshotRefused):
        await guest.restore(state[:-1] + bytes([state[-1] ^ 1]))
    assert (await run(guest, programs.reads)).value == 41


async def test_a_waiting_call_parks_the_run(guest: Guest, programs: Programs) -> None:
    ended = await run(guest, programs.keeps_then_says, Echo(WAITS))
    assert ended.status == "parked"
    assert ended.printed == "before\n"


async def test_a_parked_run_resumes_in_another_engine(
    candidate: Candidate, guest: Guest, programs: Programs, tmp_path: Path
) -> None:
    if not guest.capabilities.has_snapshot:
        pytest.skip("resumes by replay")
    parked = await run(guest, programs.keeps_then_says, Echo(WAITS))
    assert parked.snapshot is not None
    engine = candidate.make(tmp_path)
    other, echo = engine.guest(), Echo()
    ended = await other.resume(
        parked.snapshot, Returned(value="yes"), request_for(programs.keeps_then_says), echo
    )
    assert (ended.status, ended.value, ended.printed) == ("ok", "yes", "before\nafter\n")
    assert echo.calls == []
    assert (await run(other, programs.reads)).value == 41
    await engine.close()


async def test_text_printed_before_a_wait_is_returned_after_it_once(guest: Guest, programs: Programs) -> None:
    request = request_for(programs.keeps_then_says)
    parked = await guest.run(request, Echo(WAITS))
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(value="yes"), request, Echo())
    assert (ended.status, ended.value, ended.printed) == ("ok", "yes", "before\nafter\n")


async def test_a_parked_run_may_park_again(guest: Guest, programs: Programs) -> None:
    if not guest.capabilities.has_snapshot:
        pytest.skip("resumes by replay")
    request = request_for(programs.says_twice)
    first = await guest.run(request, Echo(WAITS))
    assert first.snapshot is not None
    still = await guest.resume(first.snapshot, WAITS, request, Echo())
    assert still.status == "parked"
    assert still.snapshot is not None
    second = await guest.resume(still.snapshot, Returned(value="one"), request, Echo(WAITS))
    assert second.snapshot is not None
    ended = await guest.resume(second.snapshot, Returned(value="two"), request, Echo())
    assert (ended.status, ended.value) == ("ok", "two")


async def test_a_refusal_may_come_after_the_wait(guest: Guest, programs: Programs) -> None:
    if not guest.capabilities.has_snapshot:
        pytest.skip("resumes by replay")
    request = request_for(programs.catches)
    parked = await guest.run(request, Echo(WAITS))
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Refused(reason="not today", rule="r"), request, Echo())
    assert "not today" in str(ended.value)


async def test_calls_before_a_wait_count_after_it(guest: Guest, programs: Programs) -> None:
    if not guest.capabilities.has_snapshot:
        pytest.skip("resumes by replay")
    request = request_for(programs.says_twice, GuestLimits(calls=1))
    parked = await guest.run(request, Echo(WAITS))
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(value="one"), request, Echo())
    assert ended.status == "limit"


async def test_a_snapshot_of_another_kind_is_refused(guest: Guest, programs: Programs) -> None:
    await run(guest, programs.sets)
    state = await guest.snapshot()
    with pytest.raises(SnapshotRefused):
        await guest.resume(state, Returned(), request_for(programs.says), Echo())
    with pytest.raises(SnapshotRefused):
        await guest.restore(b"anything")


async def test_closing_twice_has_no_effect(candidate: Candidate, programs: Programs, tmp_path: Path) -> None:
    engine = candidate.make(tmp_path)
    guest = engine.guest()
    await run(guest, programs.two)
    await guest.close()
    await guest.close()
    await engine.close()
    await engine.close()
