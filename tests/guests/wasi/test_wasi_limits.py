"""Each limit of a run ends it with its own error, and the session continues."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, run

from holdfast.core import Answer, JsonObject, Returned
from holdfast.guests import Guest
from holdfast.guests.wasi import wasi_engine


async def test_a_loop_is_stopped_at_exactly_its_step_limit(guest: Guest, workspace: Path) -> None:
    (workspace / "kept").write_text("kept")
    ended = await run(guest, "open('before', 'w').write('1')\nwhile True: pass", steps=1_000_000_000)
    assert ended.status == "limit"
    assert "more than 1000000000 steps" in ended.error
    assert ended.steps == 1_000_000_000
    assert [change.path for change in ended.changes] == ["before"]
    assert (workspace / "kept").read_text() == "kept"
    assert (await run(guest, "open('kept').read()")).value == "kept"


async def test_steps_within_the_limit_are_reported(guest: Guest) -> None:
    small, big = await run(guest, "1"), await run(guest, "sum(range(100_000))", steps=10**9)
    assert 0 < small.steps < big.steps < 10**9


async def test_a_loop_is_stopped_at_its_time_limit_and_keeps_its_output(guest: Guest) -> None:
    ended = await run(guest, "print('begun')\nwhile True: pass", seconds=0.2)
    assert (ended.status, ended.printed) == ("limit", "begun\n")
    assert "longer than 0.2 s" in ended.error


@pytest.mark.parametrize(
    "code",
    ["import time\ntime.sleep(60)", "import asyncio\nasyncio.run(asyncio.sleep(60))", "open('fifo').read()"],
)
async def test_code_that_only_waits_is_stopped_by_the_wall_clock(
    guest: Guest, workspace: Path, code: str
) -> None:
    os.mkfifo(workspace / "fifo")
    ended = await run(guest, code, wall_seconds=0.2)
    assert ended.status == "limit"
    assert "took longer than 0.2 s" in ended.error


async def test_waiting_for_a_call_is_not_counted(guest: Guest) -> None:
    async def slow(operation: str, arguments: JsonObject) -> Answer:
        await asyncio.sleep(1.2)
        return Returned(value=1)

    await run(guest, "0")
    assert (await run(guest, "desk.ask() + desk.ask()", slow, seconds=2, wall_seconds=2)).value == 2


async def test_too_much_memory_is_a_memory_error_that_the_session_survives(guest: Guest) -> None:
    await run(guest, "x = 1")
    ended = await run(guest, "y = bytearray(200 << 20)", memory_bytes=128 << 20)
    assert ended.status == "limit"
    assert ended.error.splitlines()[-1] == "MemoryError"
    assert (await run(guest, "x")).value == 1


async def test_code_may_catch_its_memory_error(guest: Guest) -> None:
    assert (
        await run(guest, "try:\n    bytearray(10 ** 9)\nexcept MemoryError:\n    seen = 'caught'\nseen")
    ).value == "caught"


async def test_a_memory_limit_below_what_the_interpreter_needs_is_reported(guest: Guest) -> None:
    ended = await run(guest, "1", memory_bytes=1 << 20)
    assert ended.status == "limit"
    assert "below what the interpreter needs" in ended.error
    assert (await run(guest, "1 + 1")).value == 2


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_output_ends_at_its_limit_and_the_session_continues(guest: Guest, stream: str) -> None:
    await run(guest, "x = 1")
    ended = await run(guest, f"import sys\nwhile True: print('é' * 99, file=sys.{stream})", output_bytes=5000)
    assert ended.status == "limit"
    assert "printed more than 5000 bytes" in ended.error
    assert len(ended.printed.encode()) in (4999, 5000)
    assert (await run(guest, "x")).value == 1


async def test_output_of_code_that_catches_the_limit_is_cut_off(guest: Guest) -> None:
    code = "while True:\n    try:\n        while True: print('x' * 100)\n    except BaseException: pass"
    ended = await run(guest, code, output_bytes=5000, seconds=0.2)
    assert ended.status == "limit"
    assert len(ended.printed) == 5000


async def test_output_that_bypasses_the_runner_is_cut_off_by_the_host(guest: Guest) -> None:
    code = "import wit_world\nfor _ in range(100): wit_world.show('x' * 1000)"
    ended = await run(guest, code, output_bytes=5000)
    assert len(ended.printed) == 5000


@pytest.mark.parametrize(
    ("code", "size"),
    [("'x' * 10 ** 6", 1_000_002), ("'é' * 3000", 6_002), ("{1: 'x' * 6000}", 6_007), ("b'x' * 6000", 6_003)],
)
async def test_f01_a_value_that_is_too_large_is_described_and_never_cut(
    guest: Guest, code: str, size: int
) -> None:
    ended = await run(guest, code, output_bytes=5000)
    assert (ended.status, ended.value) == ("ok", f"<a value of {size} bytes; at most 5000 are shown>")


async def test_f01_a_value_that_just_fits_is_whole(guest: Guest) -> None:
    assert (await run(guest, "'x' * 4998", output_bytes=5000)).value == "x" * 4998


async def test_calls_are_limited_also_if_the_code_catches_the_error(guest: Guest) -> None:
    made: list[str] = []

    async def count(operation: str, arguments: JsonObject) -> Answer:
        made.append(operation)
        return Returned(value=0)

    ended = await run(guest, "while True: desk.add(1, 2)", count, calls=5)
    assert (ended.status, len(made)) == ("limit", 5)
    assert "more than 5 calls" in ended.error
    code = "for _ in range(50):\n    try: desk.add(1, 2)\n    except BaseException: pass"
    assert (await run(guest, code, count, calls=5)).status == "limit"
    assert len(made) == 10


async def test_arguments_and_results_of_many_megabytes_arrive_whole(guest: Guest) -> None:
    async def echo(operation: str, arguments: JsonObject) -> Answer:
        return Returned(value=arguments["left"])

    assert (await run(guest, "len(desk.add('x' * (20 << 20), 1))", echo)).value == 20 << 20


async def test_a_result_beyond_the_limit_is_an_error_in_the_code(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def big(operation: str, arguments: JsonObject) -> Answer:
        return Returned(value="x" * (5 << 20))

    monkeypatch.setattr("holdfast.guests.wasi.request.max_message_bytes", lambda _: 4 << 20)
    assert "result of this call has more than" in (await run(guest, "desk.add(1, 2)", big)).error


@pytest.mark.parametrize(
    ("text", "is_passed"),
    [("'x' * 4_194_000", True), ("'x' * (4 << 20)", False), ("'é' * (2 << 20)", False)],
    ids=["below", "one byte a character", "two bytes a character"],
)
async def test_f01_arguments_beyond_the_limit_are_an_error_in_the_code(
    guest: Guest, monkeypatch: pytest.MonkeyPatch, text: str, is_passed: bool
) -> None:
    made: list[str] = []

    async def note(operation: str, arguments: JsonObject) -> Answer:
        made.append(operation)
        return Returned(value=len(str(arguments["left"])))

    monkeypatch.setattr("holdfast.guests.wasi.frames.MAX_ARGUMENT_BYTES", 4 << 20)
    ended = await run(guest, f"desk.add({text}, 1)", note)
    if is_passed:
        assert (ended.value, len(made)) == (4_194_000, 1)
    else:
        assert ended.error.splitlines()[-1] == "ValueError: the arguments of this call have more than 4 MB"
        assert made == []


@pytest.mark.soak
@pytest.mark.parametrize("megabytes", [119, 121, 300])
async def test_f01_arguments_at_the_real_limit_arrive_whole_or_are_an_error(
    guest: Guest, megabytes: int
) -> None:
    async def count(operation: str, arguments: JsonObject) -> Answer:
        return Returned(value=len(str(arguments["left"])))

    limits = {"memory_bytes": 3 << 30, "value_bytes": 256 << 20, "seconds": 120, "wall_seconds": 240}
    ended = await run(guest, f"desk.add('x' * ({megabytes} << 20), 1)", count, **limits)
    if megabytes < 120:
        assert ended.value == megabytes << 20
    else:
        assert ended.error.splitlines()[-1] == "ValueError: the arguments of this call have more than 120 MB"
    assert (await run(guest, "1 + 1")).value == 2


async def test_a_file_grows_no_further_than_its_limit(cache: Path, workspace: Path) -> None:
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, file_bytes=1 << 20)
    ended = await run(engine.guest(), "with open('big', 'wb') as file:\n    file.write(b'x' * (2 << 20))")
    assert ended.status == "error"
    assert (workspace / "big").stat().st_size <= 1 << 20
    await engine.close()


@pytest.mark.parametrize(
    "code",
    ["import os\nos._exit(0)", "import os\nos.abort()", "import wit_world\nwit_world.call_host('no json')",
     "import wit_world\nwit_world.call_host('{\"operation\": 1}')",
     "import wit_world\nwit_world.call_host('{\"operation\": \"x\", \"arguments\": ' + '[' * 100000 + ']' * 100000 + '}')"],
)  # fmt: skip
async def test_a_guest_that_breaks_itself_is_lost_and_the_session_continues(guest: Guest, code: str) -> None:
    await run(guest, "x = 1")
    assert (await run(guest, code)).status == "lost"
    assert (await run(guest, "x")).value == 1


async def test_a_run_is_stopped_at_its_disk_limit(cache: Path, workspace: Path) -> None:
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, disk_bytes=8 << 20)
    code = "n = 0\nwhile True:\n    n += 1\n    open(f'f{n % 9}', 'wb').write(bytes(1 << 20))"
    ended = await run(engine.guest(), code, seconds=20)
    assert ended.status == "limit"
    assert "wrote more than 8388608 bytes" in ended.error
    await engine.close()


@pytest.mark.parametrize("reply", ["5", "{}", "{'status': 'great'}", "{'status': 'ok', 'error': 7}"])
async def test_a_guest_that_forges_its_reply_is_lost(guest: Guest, reply: str) -> None:
    await run(guest, f"x = 1\nimport guest.entry\nguest.entry._run = lambda body: {reply}")
    assert (await run(guest, "1")).status == "lost"
    assert (await run(guest, "x")).value == 1


@pytest.mark.parametrize(
    "wish", ["not JSON", "[" * 100_000, '{"operation": 5, "arguments": {}}', f'{{"operation": "{"x" * 2000}", "arguments": {{}}}}']
)  # fmt: skip
async def test_a_guest_that_forges_a_call_is_lost_and_nothing_is_called(guest: Guest, wish: str) -> None:
    made: list[str] = []

    async def note(operation: str, arguments: JsonObject) -> Answer:
        made.append(operation)
        return Returned()

    ended = await run(guest, f"import wit_world\nwit_world.call_host({wish!r})", note)
    assert (ended.status, made) == ("lost", [])
    assert "a malformed call" in ended.error


async def test_a_guest_that_forges_its_variables_keeps_the_earlier_ones(guest: Guest) -> None:
    await run(guest, "x = 1")
    forged = "import guest.entry as e, json\nreal = json.dumps\njson.dumps = lambda body, **k: real(body) if 'status' in body else 'no'\nx = 2"
    assert (await run(guest, forged)).status == "ok"
    assert (await run(guest, "x")).value == 1


async def test_an_object_that_breaks_saving_keeps_the_earlier_variables(guest: Guest) -> None:
    code = "x = 2\nclass Sticky:\n    def __reduce__(self):\n        import os\n        os._exit(1)\nkept = Sticky()"
    await run(guest, "x = 1")
    assert (await run(guest, code)).status == "ok"
    assert (await run(guest, "x")).value == 1


async def test_code_of_more_than_four_megabytes_is_refused(guest: Guest) -> None:
    assert (await run(guest, "#" * (5 << 20))).status == "refused"


async def test_lone_surrogates_are_escaped_or_an_error_where_they_are_used(guest: Guest) -> None:
    assert (await run(guest, "'\\ud800'")).value == "'\\ud800'"
    assert (await run(guest, "print('a\\ud800b')")).printed == "a?b\n"
    assert "\\ud800" in (await run(guest, "raise ValueError('\\ud800')")).error
    assert "UnicodeEncodeError" in (await run(guest, "desk.add('\\ud800', 1)")).error
